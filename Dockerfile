# The bundled program on an image with Node, and without a shell, a package manager, or root. Only the last stage is kept.
# Tags can move. To pin both images, set --build-arg BUILD_IMAGE=NAME@sha256:… and RUNTIME_IMAGE.
ARG BUILD_IMAGE=node:24-bookworm-slim
ARG RUNTIME_IMAGE=gcr.io/distroless/nodejs24-debian13:nonroot

FROM ${BUILD_IMAGE} AS build
WORKDIR /drawbridge
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts
COPY tsconfig.json ./
COPY release release
COPY src src
RUN npm run build

FROM ${RUNTIME_IMAGE}
# The extension .mjs marks an ES module; the image has no package.json.
COPY --from=build /drawbridge/dist/drawbridge.js /drawbridge.mjs
# The thread that answers probes; the program looks for it beside itself.
COPY --from=build /drawbridge/dist/health-thread.mjs /health-thread.mjs
# The client, for helm test.
COPY --from=build /drawbridge/dist/client.cjs /client.cjs
# What the gateway loads to store recordings in a bucket.
COPY --from=build /drawbridge/dist/s3-sink.mjs /s3-sink.mjs
# What notify loads to send mail.
COPY --from=build /drawbridge/dist/email.mjs /email.mjs
USER 65532:65532
EXPOSE 9443 8081 8080
ENTRYPOINT ["/nodejs/bin/node", "/drawbridge.mjs"]
CMD ["serve"]
