# The image of the controller. The registry is your choice:
#
#   docker build -t registry.example.com/bowline:0.1.0 .
#   docker push registry.example.com/bowline:0.1.0
#   bowline install --image registry.example.com/bowline:0.1.0
#
# deploy/check-image runs these steps without an engine.
FROM docker.io/library/rust:1.95-bookworm AS build
WORKDIR /src
COPY . .
RUN cargo install --locked --path . --root /out

FROM docker.io/library/debian:bookworm-slim
# git for credential helpers, ssh for repositories that are reached by ssh.
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates git openssh-client \
    && rm -rf /var/lib/apt/lists/*
# ssh refuses to run for a user that has no entry.
RUN echo 'bowline:x:65532:65532:bowline:/var/cache:/usr/sbin/nologin' >> /etc/passwd
COPY --from=build /out/bin/bowline /usr/local/bin/bowline
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/bowline"]
CMD ["controller", "--listen=0.0.0.0:8080"]
