# Sourced by the other scripts. `make_environment` leaves .venv as scripts/requirements.txt says,
# and takes a few milliseconds where it is so already.

repository="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
environment="$repository/.venv"
# Written last, so an environment without it is half-made. It names what the environment was made
# from: this folder, because an environment cannot be moved, and the files that say what is in it.
stamp="$environment/made-from"
made_from="$repository
$(cat "$repository/scripts/requirements.txt" "$repository/pyproject.toml")"

is_current() {
    [[ -x "$environment/bin/python" && -f "$stamp" && "$(<"$stamp")" == "$made_from" ]]
}

# Runs a command, with a dot every second, so that it is seen to go on.
with_dots() {
    (
        exec 9<&- >/dev/null
        while sleep 1 && kill -0 $$ 2>/dev/null; do printf . >&2; done
    ) &
    local dots=$! code=0
    trap 'kill $dots 2>/dev/null' EXIT
    "$@" || code=$?
    trap - EXIT
    kill $dots
    wait $dots 2>/dev/null || true
    echo >&2
    return $code
}

install_pinned() {
    if [[ ! -x "$environment/bin/python" || ! -f "$stamp" ||
        "$(head -n 1 "$stamp")" != "$repository" ]]; then
        echo "Making $environment, which takes a minute or two." >&2
        rm -rf "$environment"
        with_dots python3 -m venv "$environment"
    else
        echo "Bringing $environment up to date." >&2
        rm -f "$stamp"
    fi
    local pip=("$environment/bin/python" -m pip -qq --disable-pip-version-check --no-input)
    with_dots "${pip[@]}" install --no-deps --requirement "$repository/scripts/requirements.txt"
    with_dots "${pip[@]}" install --no-deps --no-build-isolation --editable "$repository"
    printf '%s\n' "$made_from" >"$stamp"
}

make_environment() {
    if is_current; then
        return
    fi
    if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
        echo "This needs python3, version 3.11 or newer." >&2
        exit 1
    fi
    # The lock belongs to the open file, so it outlives the command that takes it, and ends when
    # this script and everything it started have ended, however they end.
    exec 9<>"$repository/scripts/requirements.txt"
    python3 -c 'import fcntl; fcntl.flock(9, fcntl.LOCK_EX)'
    if ! is_current; then
        install_pinned
    fi
    exec 9<&-
}
