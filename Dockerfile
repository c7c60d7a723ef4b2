# The two commands of README.md, in a container:
#   docker build -t grid-emulator .
#   docker run --shm-size=2g grid-emulator                  # the main job
#   docker run --shm-size=2g grid-emulator scripts/test     # the tests
FROM python:3.11-slim
RUN apt-get update && apt-get install --yes --no-install-recommends git && rm -rf /var/lib/apt/lists/*
WORKDIR /grid-emulator
COPY . .
RUN scripts/grid check two-vos
CMD ["scripts/grid", "run", "partial-utility"]
