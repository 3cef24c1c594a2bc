# docker build --tag magrounding .
# docker run --rm --user 12345 --cpus 1 --volume "$PWD/runs:/runs" magrounding train --env ma_rtfm --agents 2 --preset demo --out /runs/demo
FROM python:3.11-slim
ARG TORCH=torch==2.13.0
COPY . /magrounding
RUN pip install --no-cache-dir "$TORCH" && pip install --no-cache-dir /magrounding && mkdir -m 1777 /runs
# A user without an entry in the password file has no home, and what it writes stays in its own temporary folder.
ENV HOME=/nonexistent
WORKDIR /runs
ENTRYPOINT ["magrounding"]
CMD ["doctor"]
