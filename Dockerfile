# One static binary and nothing else: no shell, no package manager, not root.
#
#   docker build -t sallyport .

FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=unknown
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /sallyport ./cmd/sallyport

FROM scratch
COPY --from=build /sallyport /sallyport
USER 65532:65532
ENTRYPOINT ["/sallyport"]
