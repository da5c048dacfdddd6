# The one bundled file on a Node without shell, package manager or root. Everything before the last FROM is thrown away.
# Tags move: pin both with --build-arg …_IMAGE=NAME@sha256:…
ARG BUILD_IMAGE=node:22-bookworm-slim
ARG RUNTIME_IMAGE=gcr.io/distroless/nodejs22-debian12:nonroot

FROM ${BUILD_IMAGE} AS build
WORKDIR /drawbridge
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts
COPY tsconfig.json ./
COPY src src
RUN npm run build

FROM ${RUNTIME_IMAGE}
# By its name Node knows that it is a module; there is no package.json that would tell.
COPY --from=build /drawbridge/dist/drawbridge.js /drawbridge.mjs
USER 65532:65532
EXPOSE 9443 8081 8080
ENTRYPOINT ["/nodejs/bin/node", "/drawbridge.mjs"]
CMD ["serve"]
