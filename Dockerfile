# syntax=docker/dockerfile:1
# One image for every role of a server, for linux/amd64 and linux/arm64:
#   docker buildx build --platform linux/amd64,linux/arm64 -t flywheel .
# Nothing is compiled for a processor here (native/prebuilt already is), so the first two stages run on the builder's own platform, without emulation.
# To pin the base image by its content: --build-arg NODE_IMAGE=node@sha256:…
ARG NODE_IMAGE=node:24.21.0-bookworm-slim

FROM --platform=$BUILDPLATFORM ${NODE_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
COPY packaging packaging
RUN --mount=type=cache,target=/npm npm ci --cache /npm --ignore-scripts
COPY tsconfig.json tsconfig.build.json ./
COPY src src
COPY web web
RUN npx tsc -p tsconfig.build.json --declaration false --sourceMap false && npx vite build web
# ONNX Runtime comes with the libraries of every platform, 280 MB. One of them goes along. Buildah and Podman set TARGETARCH
# only if --platform is given.
ARG TARGETARCH
RUN node packaging/runtime.mjs "linux/$(echo "${TARGETARCH:-$(dpkg --print-architecture)}" | sed s/amd64/x64/)"

FROM --platform=$BUILDPLATFORM ${NODE_IMAGE} AS packages
ARG TARGETARCH
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
COPY packaging packaging
# The base image has glibc, not musl.
RUN --mount=type=cache,target=/npm \
    cpu=$(echo "${TARGETARCH:-$(dpkg --print-architecture)}" | sed s/amd64/x64/) \
    && npm ci --cache /npm --omit=dev --ignore-scripts --os=linux --cpu="$cpu" --libc=glibc \
    && rm -r node_modules/@libsql/*-musl

FROM ${NODE_IMAGE}
ENV NODE_ENV=production \
    FLYWHEEL_HOST=0.0.0.0 \
    FLYWHEEL_DATA=/data \
    HF_HOME=/data/huggingface
WORKDIR /app
COPY package.json LICENSE openapi.json ./
COPY bin bin
COPY models/flywheel-mini models/flywheel-mini
COPY native/prebuilt native/prebuilt
COPY templates templates
COPY trainer/flywheel_gpu trainer/flywheel_gpu
COPY trainer/flywheel_trainer trainer/flywheel_trainer
COPY trainer/flywheel_trainer_ray.py trainer/
COPY --from=packages /app/node_modules node_modules
COPY --from=build /app/runtime runtime
COPY --from=build /app/dist dist
RUN ln -s /app/bin/flywheel /usr/local/bin/flywheel && install -d -o node -g node /data
# By number, so that Kubernetes can see that it is not root. This is the user "node" of the base image.
USER 1000:1000
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=120s --retries=3 \
    CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.FLYWHEEL_PORT ?? 8000}/health`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
# Node is process 1. It ends its own child processes and drains on SIGTERM (--shutdown-timeout).
ENTRYPOINT ["node", "/app/bin/flywheel"]
CMD ["serve"]
