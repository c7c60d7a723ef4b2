"""Information overlays by name. What another plugs in is looked at as it answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from inspect import signature
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from grid.model.errors import WrongPart, kind_of, shorten
from grid.model.plugins.kind import Kind, refuse_misspelt, refuse_other_arguments
from grid.model.plugins.origin import Origin, ask, is_whole
from grid.model.time import Time, from_seconds
from grid.protocol.information.interface import Letter, Overlay, View, Whom

if TYPE_CHECKING:
    from numpy.random import Generator

ATTRIBUTES = (
    "period_us", "view_size", "starts_known", "probes_first", "timeout_us", "keeps_probes",
)  # fmt: skip
METHODS = ("audience", "acquaintances", "rounds", "wait_us", "every_period", "answer", "probes")


class GuardedOverlay(Overlay):
    """An overlay that another plugged in: what is wrong with its answers is told with its line."""

    def __init__(self, origin: Origin, overlay: Any) -> None:
        self.origin = origin
        self._overlay = overlay
        for name in ATTRIBUTES:
            setattr(self, name, getattr(overlay, name))

    def audience(self, vos: int, rng: Generator) -> Whom:
        return self._asked("audience", _whom_problem, vos, rng)

    def acquaintances(self, audience: Whom) -> Whom:
        return self._asked("acquaintances", _whom_problem, audience)

    def rounds(self, peers: int) -> int:
        rounds: int = ask(self.origin, "rounds", self._overlay.rounds, _rounds_problem, peers)
        return rounds

    def wait_us(self, now: Time, rng: Generator) -> Time:
        wait_us: Time = ask(self.origin, "wait_us", self._overlay.wait_us, _wait_problem, now, rng)
        return wait_us

    def every_period(self, view: View, rng: Generator) -> Iterable[Letter]:
        return self._asked("every_period", _letters_problem, view, rng)

    def answer(self, view: View, sender: int, rng: Generator) -> Iterable[Letter]:
        return self._asked("answer", _letters_problem, view, sender, rng)

    def probes(self, view: View, rng: Generator) -> Sequence[int]:
        return self._asked("probes", _probes_problem, view, rng)

    def _asked(self, name: str, check: Callable[..., str | None], *given: Any) -> list[Any]:
        """What its method `name` answers, as a list, for it may be a generator."""
        method = getattr(self._overlay, name)

        def listed(*them: Any) -> Any:
            answer = method(*them)
            return list(answer) if isinstance(answer, Iterable) else answer

        def problem(answer: Any, *them: Any) -> str | None:
            if not isinstance(answer, list):
                return f"gave {shorten(answer)}, expected a list or another iterable"
            return check(answer, *them)

        answer: list[Any] = ask(self.origin, name, listed, problem, *given)
        return answer


def _are_whole(numbers: Any) -> bool:
    """Is it a tuple or a list of whole numbers?"""
    return isinstance(numbers, tuple | list) and all(map(is_whole, numbers))


def _whom_problem(answer: list[Any], vos: Any, *_: Any) -> str | None:
    count = vos if isinstance(vos, int) else len(vos)
    if len(answer) != count:
        return f"gave {len(answer)} rows, expected one for each of the {count} VOs"
    for vo, whom in enumerate(answer):
        if not _are_whole(whom):
            return f"gave {shorten(whom)} for VO {vo}, expected a tuple of numbers of VOs"
        if list(whom) != sorted(dict.fromkeys(whom)) or vo in whom:
            return f"gave {shorten(whom)} for VO {vo}, expected other VOs in ascending order"
        if any(not 0 <= other < count for other in whom):
            return f"gave {shorten(whom)} for VO {vo}, expected numbers below {count}"
    return None


def _rounds_problem(answer: Any, *_: Any) -> str | None:
    if type(answer) is int and 0 <= answer <= 10_000:
        return None
    return f"gave {shorten(answer)}, expected a whole number from 0 to 10000"


def _wait_problem(answer: Any, *_: Any) -> str | None:
    if type(answer) is int and answer >= 1:
        return None
    return f"gave {shorten(answer)}, expected a whole number of at least 1"


def _letters_problem(answer: list[Any], view: View, *_: Any) -> str | None:
    for letter in answer:
        if not isinstance(letter, Letter):
            return f"gave {kind_of(letter)}, expected a Letter"
        if not is_whole(letter.to) or letter.to not in view.peers:
            return f"gave a letter to {shorten(letter.to)}, expected one of the view's peers"
        if not _are_whole(letter.entries):
            return f"gave a letter of {shorten(letter.entries)}, expected a tuple of numbers of VOs"
    return None


def _probes_problem(answer: list[Any], view: View, *_: Any) -> str | None:
    strangers = [vo for vo in answer if vo not in view.peers]
    if strangers or not _are_whole(answer) or len(dict.fromkeys(answer)) < len(answer):
        return f"gave {shorten(answer)}, expected different ones of the view's peers"
    return None


def _guarded(origin: Origin, overlay: Any) -> Overlay:
    missing = [name for name in METHODS if not callable(getattr(overlay, name, None))]
    missing += [name for name in ATTRIBUTES if not hasattr(overlay, name)]
    if missing:
        found = f"{type(overlay).__name__} without {missing[0]} ({origin.shown}:{origin.line})"
        raise WrongPart(
            found, "an overlay that inherits from grid.protocol.information.interface.Overlay"
        )
    refuse_misspelt(origin, overlay, (*ATTRIBUTES, *METHODS))
    for name in METHODS:
        given = list(signature(getattr(Overlay, name)).parameters)[1:]
        refuse_other_arguments(origin, overlay, name, given)
    for name, least in (("period_us", 1), ("view_size", 1), ("timeout_us", 1)):
        value = getattr(overlay, name)
        may_be_none = name != "timeout_us" and value is None
        if not may_be_none and (type(value) is not int or value < least):
            expected = f"an overlay whose {name} is a whole number of at least {least}"
            raise WrongPart(f"{name} = {shorten(value)}", expected)
    return GuardedOverlay(origin, overlay)


Period = Annotated[float, Field(ge=1e-6, le=1e9, description="seconds between two rounds")]
Reach = Annotated[int, Field(ge=1, le=10_000, description="so many next VOs on each side")]


def all_vos() -> Overlay:
    """Every VO publishes its status snapshots to all others, by the limits of the protocol.

    As in the paper on partial utility (PU Algorithm 1).
    """
    from grid.protocol.information.graphs import All

    return All()


def nothing() -> Overlay:
    """VOs know who is in the grid and what resources they have, and never how loaded they are.

    Selections and rules that look at the status of others take no other VO, unless they choose
    without it, such as `random` and `until_idle`.
    """
    return Overlay()


def ring(*, reach: Reach = 1) -> Overlay:
    """VOs in a ring, in the scenario's order: a VO hears the next ones on both sides, no others."""
    from grid.protocol.information.graphs import Ring

    return Ring(reach)


def random_regular(
    *, degree: Annotated[int, Field(ge=1, le=10_000, description="neighbours of each VO")] = 4
) -> Overlay:
    """A random graph in which each VO has `degree` neighbours, drawn from the scenario's seed.

    Steger and Wormald 1999. If VOs times degree is odd, one VO has one neighbour less.
    """
    from grid.protocol.information.graphs import RandomRegular

    return RandomRegular(degree)


def small_world(
    *,
    reach: Reach = 2,
    rewired: Annotated[
        float, Field(ge=0, le=1, description="chance of each edge to lead to any VO instead")
    ] = 0.1,
) -> Overlay:
    """A ring some of whose edges lead anywhere: Watts and Strogatz, Nature 393, 1998.

    Few edges are changed, and all VOs are few steps from each other.
    """
    from grid.protocol.information.graphs import SmallWorld

    return SmallWorld(reach, rewired)


def tree(
    *, children: Annotated[int, Field(ge=1, le=10_000, description="of each VO, at most")] = 2
) -> Overlay:
    """VOs in a tree, in the scenario's order, the first on top: a VO hears parent and children."""
    from grid.protocol.information.graphs import Tree

    return Tree(children)


def edges(
    *,
    edges: Annotated[
        tuple[tuple[int, int], ...],
        Field(description="pairs of VOs that hear each other, by their places from 0"),
    ],
) -> Overlay:
    """VOs that hear each other are given one by one, such as `edges: [[0, 1], [0, 2]]`."""
    from grid.protocol.information.graphs import Edges

    if any(min(edge) < 0 or edge[0] == edge[1] for edge in edges):
        raise WrongPart(repr(edges), "pairs of two different VOs, from 0 on", ("edges",))
    return Edges(edges)


def edges_beyond(
    name: str, settings: Iterable[tuple[str, Any]], vos: int
) -> Iterator[tuple[int, int]]:
    """The places of edges of `edges` that name VOs which are not there, and the first such VO."""
    for setting, value in settings if name == "edges" else ():
        if setting == "edges" and isinstance(value, list | tuple):
            for place, edge in enumerate(value):
                if max(edge) >= vos:
                    yield place, max(edge)


def gossip(
    *,
    mode: Annotated[
        Literal["push", "pull", "push_pull"],
        Field(description="tell what one knows, ask for what others know, or both"),
    ] = "push",
    fan_out: Annotated[int, Field(ge=1, le=10_000, description="VOs written to each round")] = 1,
    period_s: Period = 10.0,
    view_size: Annotated[
        int | None, Field(ge=1, le=1_000_000, description="VOs remembered; none: all")
    ] = None,
    times: Annotated[
        Literal["periodic", "shuffled", "poisson"],
        Field(
            description="when a VO has its rounds: once a period at a time of its own, once in "
            "every period at a time drawn anew, or after waits that are exponential"
        ),
    ] = "periodic",
) -> Overlay:
    """Each round every VO writes to VOs drawn at random; entries travel with their age.

    Demers et al., Epidemic algorithms for replicated database maintenance, 1987: anti-entropy by
    push, pull, or both. Of each VO the newest entry counts; with `view_size` only so many VOs are
    remembered, those heard of last (as in Newscast: Jelasity, Montresor and Babaoglu 2005). With
    `periodic` times, VOs have their rounds in the same order in every period. Once all jobs are
    submitted and nothing is new, they rest.
    """
    from grid.protocol.information.gossip import Gossip

    return Gossip(mode, fan_out, from_seconds(period_s), view_size, times)


def index(
    *,
    children: Annotated[int, Field(ge=1, le=10_000, description="of each index, at most")] = 8,
    period_s: Period = 10.0,
) -> Overlay:
    """A hierarchy of index services, in VOs in the scenario's order, the first on top.

    Each round a VO registers with its parent what it knows of the tree under it, and tells each
    child what it knows of all else. So a status is as old as the way over the tree, in rounds.
    After MDS-2: Czajkowski, Fitzgerald, Foster and Kesselman, Grid information services for
    distributed resource sharing, 2001.
    """
    from grid.protocol.information.gossip import IndexTree

    return IndexTree(children, from_seconds(period_s))


def probes(
    *,
    count: Annotated[int, Field(ge=1, le=10_000, description="VOs asked for each job")] = 2,
    timeout_s: Annotated[
        float, Field(ge=1e-6, le=1e9, description="seconds after which no answer is waited for")
    ] = 1.0,
    keep: Annotated[bool, Field(description="later jobs know what was answered, too")] = False,
) -> Overlay:
    """For each job, VOs drawn at random are asked how they are now, and their answers waited for.

    Only those that answer in time are known to the job, and its own VO. Eager, Lazowska and
    Zahorjan 1986; with batches of tasks it is the sampling of Sparrow (Ousterhout et al. 2013).
    """
    from grid.protocol.information.gossip import Probes

    return Probes(count, from_seconds(timeout_s), keep)


_FUNCTIONS = {"all": "all_vos", "none": "nothing"}
NAMES = (
    "all", "none", "ring", "random_regular", "small_world", "tree", "edges", "gossip", "index",
    "probes",
)  # fmt: skip
INFORMATION = Kind(
    "information",
    "information overlay",
    "decides which VOs hear of which other VOs' status, when, and how",
    {name: f"{__name__}:{_FUNCTIONS.get(name, name)}" for name in NAMES},
    _guarded,
    place="protocol.information",
)
