# syntax=docker/dockerfile:1

# The console's third-party files, pinned by the lock file.
FROM node:22-bookworm-slim AS vendor
WORKDIR /static
COPY static/package.json static/package-lock.json ./
RUN npm ci --ignore-scripts --omit=dev --no-audit --no-fund
COPY static/vendor.mjs static/icons.txt ./
RUN node vendor.mjs

FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
COPY --from=vendor /static/vendor/ static/vendor/
# The build context does not include the Git history, so pass the version: --build-arg VERSION=...
ARG VERSION=unknown
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=${VERSION}" \
    -o /drawbridge ./cmd/drawbridge
# Uploaded documents go here unless DRAWBRIDGE_BLOB_URL names a bucket.
RUN mkdir -p /data/blobs

# The image has certificates and time zones, but no shell or package manager. Runs as user 65532.
FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /drawbridge /drawbridge
COPY --from=build --chown=65532:65532 /data /data
ENV DRAWBRIDGE_ENV=production \
    DRAWBRIDGE_LISTEN=0.0.0.0:8080 \
    DRAWBRIDGE_BLOB_URL=file:///data/blobs
WORKDIR /data
VOLUME /data
EXPOSE 8080
# The image has no other program that could make the request.
HEALTHCHECK --interval=10s --timeout=6s --start-period=30s --retries=3 \
    CMD ["/drawbridge", "health"]
ENTRYPOINT ["/drawbridge"]
CMD ["serve"]
