# The one bundled file on a Node without shell, package manager or root. Everything before the last FROM is thrown away.
FROM node:22-bookworm-slim AS build
WORKDIR /drawbridge
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts
COPY tsconfig.json ./
COPY src src
RUN npm run build

FROM gcr.io/distroless/nodejs22-debian12:nonroot
# By its name Node knows that it is a module; there is no package.json that would tell.
COPY --from=build /drawbridge/dist/drawbridge.js /drawbridge.mjs
USER 65532:65532
EXPOSE 9443 8081 8080
ENTRYPOINT ["/nodejs/bin/node", "/drawbridge.mjs"]
CMD ["serve"]
