//! Tests of git references to servers that hang, send slowly, send too much, or send wrong data.

use std::io::Write;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use bowline::resolve::git::Git;
use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::repository::{FILE, Repository, git};
use super::server::{Connection, Request, Server, answer};
use super::{CANARY, Place, kind, reference, refused};

const MOMENT: Duration = Duration::from_millis(5);
const COMMIT: &str = "1234567812345678123456781234567812345678";

fn until_gone(connection: &mut dyn Connection, mut each: impl FnMut(&mut dyn Connection) -> bool) {
    while each(connection) && !connection.is_gone(MOMENT) {}
}

#[test]
fn a_server_that_hangs_is_left_at_the_deadline() {
    type Part = fn(&Request, &mut dyn Connection);
    let ways: [(&str, Part); 6] = [
        ("never answers", |_, connection| {
            until_gone(connection, |_| true)
        }),
        ("ends in the middle of the head", |_, connection| {
            let _ = connection.write_all(b"HTTP/1.1 200 OK\r\nContent-Le");
            until_gone(connection, |_| true);
        }),
        ("stops after the head", |_, connection| {
            let head = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nContent-Type: application/x-git-upload-pack-advertisement\r\n\r\n";
            let _ = connection.write_all(head.as_bytes());
            until_gone(connection, |_| true);
        }),
        ("trickles the head", |_, connection| {
            let _ = connection.write_all(b"HTTP/1.1 200 OK\r\nX-Long: ");
            until_gone(connection, |connection| connection.write_all(b"x").is_ok());
        }),
        ("trickles the body", |_, connection| {
            let head = "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\nContent-Type: application/x-git-upload-pack-advertisement\r\n\r\nfff0";
            let _ = connection.write_all(head.as_bytes());
            until_gone(connection, |connection| connection.write_all(b"x").is_ok());
        }),
        (
            "shakes hands and then hangs",
            |request, connection| match request.method.as_str() {
                "GET" => advertise(connection),
                _ => until_gone(connection, |_| true),
            },
        ),
    ];
    let place = Place::new();
    for (name, way) in ways {
        let server = Server::start(way);
        let error = refused(
            &place.impatient(),
            &reference(server.url("r"), COMMIT, FILE),
        );
        assert_eq!(kind(&error), "deadline", "{name}");
        assert!(error.may_pass());
    }
    // This listener never accepts a connection.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/r", listener.local_addr().unwrap());
    assert_eq!(
        kind(&refused(&place.impatient(), &reference(url, COMMIT, FILE))),
        "deadline"
    );
    let url = format!("https://{}/r", listener.local_addr().unwrap());
    assert_eq!(
        kind(&refused(&place.impatient(), &reference(url, COMMIT, FILE))),
        "deadline"
    );
    assert!(place.leftovers().is_empty());
}

#[test]
fn a_server_that_is_not_there_or_no_git_server_is_said() {
    let place = Place::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/r", listener.local_addr().unwrap());
    drop(listener);
    assert_eq!(
        kind(&refused(&place.git(), &reference(url, COMMIT, FILE))),
        "unreachable"
    );
    let unknown = "https://no-such-host.invalid/r";
    assert_eq!(
        kind(&refused(&place.git(), &reference(unknown, COMMIT, FILE))),
        "unreachable"
    );
    for (status, expected) in [
        ("200 OK", "broken"),
        ("204 No Content", "broken"),
        ("401 Unauthorized", "denied"),
        ("403 Forbidden", "denied"),
        ("404 Not Found", "no repository"),
        ("410 Gone", "no repository"),
        ("418 I'm a teapot", "server"),
        ("429 Too Many Requests", "server"),
        ("500 Internal Server Error", "server"),
        ("503 Service Unavailable", "server"),
    ] {
        let server =
            Server::start(move |_, connection| answer(connection, status, &[], b"<html>\x1b[2J"));
        let error = refused(&place.git(), &reference(server.url("r"), COMMIT, FILE));
        assert_eq!(kind(&error), expected, "{status}");
    }
}

fn line(text: impl AsRef<[u8]>) -> Vec<u8> {
    let text = text.as_ref();
    let mut line = format!("{:04x}", text.len() + 4).into_bytes();
    line.extend(text);
    line
}

fn advertise(connection: &mut dyn Connection) {
    let mut body = line("# service=git-upload-pack\n");
    body.extend(b"0000");
    body.extend(line("version 2\n"));
    body.extend(line("fetch=shallow\n"));
    body.extend(line("object-format=sha1\n"));
    body.extend(b"0000");
    answer(
        connection,
        "200 OK",
        &[(
            "Content-Type",
            "application/x-git-upload-pack-advertisement",
        )],
        &body,
    );
}

/// Starts an http server that answers every fetch with the same bytes.
fn saying(body: Vec<u8>) -> Server {
    Server::start(move |request, connection| match request.method.as_str() {
        "GET" => advertise(connection),
        _ => answer(
            connection,
            "200 OK",
            &[("Content-Type", "application/x-git-upload-pack-result")],
            &body,
        ),
    })
}

/// Starts an http server that answers every fetch with the same git pack.
fn sending(pack: &[u8]) -> Server {
    let mut body = line("packfile\n");
    for part in pack.chunks(60_000) {
        body.extend(line([b"\x01", part].concat()));
    }
    body.extend(b"0000");
    saying(body)
}

fn sealed(mut pack: Vec<u8>) -> Vec<u8> {
    let mut hasher = gix::hash::hasher(gix::hash::Kind::Sha1);
    hasher.update(&pack);
    pack.extend(hasher.try_finalize().unwrap().as_slice());
    pack
}

fn pack_of(entries: &[Vec<u8>]) -> Vec<u8> {
    let mut pack = b"PACK\0\0\0\x02".to_vec();
    pack.extend(u32::try_from(entries.len()).unwrap().to_be_bytes());
    pack.extend(entries.concat());
    sealed(pack)
}

fn varint(mut size: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while size > 0x7f {
        bytes.push((size & 0x7f) as u8 | 0x80);
        size >>= 7;
    }
    bytes.push(size as u8);
    bytes
}

fn head(kind: u8, size: usize) -> Vec<u8> {
    let first = kind << 4 | (size & 0xf) as u8;
    if size < 16 {
        return vec![first];
    }
    [vec![first | 0x80], varint(size >> 4)].concat()
}

fn deflated(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn entry(kind: u8, bytes: &[u8]) -> Vec<u8> {
    [head(kind, bytes.len()), deflated(bytes)].concat()
}

const COMMIT_ENTRY: u8 = 1;
const BLOB: u8 = 3;
const OFFSET_DELTA: u8 = 6;

/// Returns a git delta whose result is its base repeated `times` times.
fn repeated(base_size: usize, times: usize) -> Vec<u8> {
    let mut delta = [varint(base_size), varint(base_size * times)].concat();
    for _ in 0..times {
        let [a, b, c, _] = u32::try_from(base_size).unwrap().to_le_bytes();
        delta.extend([0b1111_0000, a, b, c]);
    }
    delta
}

fn id(kind: gix::objs::Kind, bytes: &[u8]) -> String {
    gix::objs::compute_hash(gix::hash::Kind::Sha1, kind, bytes)
        .unwrap()
        .to_string()
}

#[test]
fn a_pack_that_does_not_hold_the_commit_is_no_answer() {
    let lone =
        format!("tree {COMMIT}\nauthor a <a> 1 +0000\ncommitter a <a> 1 +0000\n\nx\n").into_bytes();
    let lone_id = id(gix::objs::Kind::Commit, &lone);
    let blob_id = id(gix::objs::Kind::Blob, b"not a commit");
    let whole = pack_of(&[entry(COMMIT_ENTRY, &lone)]);
    let mut unsealed = whole.clone();
    *unsealed.last_mut().unwrap() ^= 1;
    let mut many = whole[..whole.len() - 20].to_vec();
    many[8..12].copy_from_slice(&u32::MAX.to_be_bytes());
    let lying_size = [head(BLOB, 10), deflated(&[0; 100])].concat();
    let no_base = [head(OFFSET_DELTA, 4), vec![99], deflated(&[1, 1, 1, 65])].concat();
    let ref_delta = [head(7, 4), vec![9; 20], deflated(&[1, 1, 1, 65])].concat();
    let wrong_result = [
        entry(BLOB, b"base"),
        [
            head(OFFSET_DELTA, 5),
            vec![13],
            deflated(&[4, 100, 2, 65, 66]),
        ]
        .concat(),
    ];
    let place = Place::new();
    for (name, pack, wanted) in [
        ("nothing", Vec::new(), COMMIT),
        ("no pack", b"PICK\0\0\0\x02\0\0\0\0".to_vec(), COMMIT),
        ("an empty pack", pack_of(&[]), COMMIT),
        ("another commit", whole.clone(), COMMIT),
        ("a commit without its tree", whole.clone(), lone_id.as_str()),
        (
            "a blob for a commit",
            pack_of(&[entry(BLOB, b"not a commit")]),
            &blob_id,
        ),
        ("a broken seal", unsealed, &lone_id),
        ("half of it", whole[..whole.len() / 2].to_vec(), &lone_id),
        ("more objects than there are", sealed(many), &lone_id),
        ("a wrong size", pack_of(&[lying_size]), COMMIT),
        ("a delta without base", pack_of(&[no_base]), COMMIT),
        (
            "a delta with an unknown base",
            pack_of(&[ref_delta]),
            COMMIT,
        ),
        (
            "a delta with a wrong result",
            pack_of(&wrong_result),
            COMMIT,
        ),
    ] {
        let server = sending(&pack);
        let error = refused(&place.git(), &reference(server.url("r"), wanted, FILE));
        assert_eq!(kind(&error), "broken", "{name}");
    }
    assert!(place.leftovers().is_empty());
}

#[test]
fn bombs_do_not_go_off() {
    let zeros = entry(BLOB, &vec![0; 40_000_000]);
    let base = vec![7; 50_000];
    // The first delta makes its base two hundred times larger, and the second delta uses the result.
    let first = repeated(base.len(), 200);
    let second = repeated(base.len() * 200, 1);
    let base = entry(BLOB, &base);
    let first = [
        head(OFFSET_DELTA, first.len()),
        offset(base.len()),
        deflated(&first),
    ]
    .concat();
    let second = [
        head(OFFSET_DELTA, second.len()),
        offset(first.len()),
        deflated(&second),
    ]
    .concat();
    let many: Vec<_> = (0..3000u32)
        .map(|n| entry(BLOB, &n.to_be_bytes()))
        .collect();
    let place = Place::new();
    let mut settings = place.settings();
    settings.limits.object_bytes = 4_000_000;
    settings.limits.objects = 2000;
    let reader = Git::new(settings);
    for (name, pack) in [
        ("zeros", pack_of(&[zeros])),
        ("deltas", pack_of(&[base, first, second])),
        ("many", pack_of(&many)),
    ] {
        println!("{name}: {} bytes", pack.len());
        let server = sending(&pack);
        let error = refused(&reader, &reference(server.url("r"), COMMIT, FILE));
        assert_eq!(kind(&error), "too large", "{name}");
    }
    assert!(place.leftovers().is_empty());
}

fn offset(distance: usize) -> Vec<u8> {
    // In git's encoding of distances, each further byte adds one to the value.
    let mut bytes = vec![(distance & 0x7f) as u8];
    let mut rest = distance >> 7;
    while rest > 0 {
        rest -= 1;
        bytes.insert(0, (rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    bytes
}

#[test]
fn a_flood_ends_at_the_limit() {
    let place = Place::new();
    let mut settings = place.settings();
    settings.limits.received_bytes = 1_000_000;
    let reader = Git::new(settings);
    // A server sends progress messages without end, and another an advertisement without end.
    let floods: [(&str, Vec<u8>); 2] = [
        (
            "GET",
            line([b"\x02", vec![b'.'; 60_000].as_slice()].concat()),
        ),
        ("POST", line(vec![b'x'; 1000])),
    ];
    for (good, more) in floods {
        let more = Arc::new(more);
        let server = Server::start(move |request, connection| {
            let (kind, start) = match request.method.as_str() {
                method if method == good => return advertise(connection),
                "GET" => ("advertisement", line("version 2\n")),
                _ => ("result", line("packfile\n")),
            };
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/x-git-upload-pack-{kind}\r\nConnection: close\r\n\r\n"
            );
            let _ = connection.write_all(head.as_bytes());
            let _ = connection.write_all(&start);
            while connection.write_all(&more).is_ok() {}
        });
        let error = refused(&reader, &reference(server.url("r"), COMMIT, FILE));
        assert_eq!(kind(&error), "too large");
    }
}

#[test]
fn what_a_server_says_is_repeated_short_and_clean() {
    let place = Place::new();
    let long = format!("ERR \x1b[31mno\x07 \u{202e}such thing {}", "x".repeat(5000));
    let server = saying(line(long));
    let error = refused(&place.git(), &reference(server.url("r"), COMMIT, FILE));
    assert_eq!(kind(&error), "broken");
    assert!(error.to_string().contains("such thing"));
    assert!(error.to_string().len() < 900);
}

#[test]
fn a_server_that_repeats_the_token_does_not_bring_it_into_a_message() {
    let place = Place::new();
    let tokens = place.path("tokens");
    std::fs::create_dir(&tokens).unwrap();
    let server = Server::start(|request, connection| {
        match (request.method.as_str(), request.header("authorization")) {
            ("GET", None) => answer(connection, "401 Unauthorized", &[], b""),
            ("GET", _) => advertise(connection),
            (_, authorization) => {
                let body = line(format!(
                    "ERR you said {} and {CANARY}",
                    authorization.unwrap_or_default()
                ));
                answer(
                    connection,
                    "200 OK",
                    &[("Content-Type", "application/x-git-upload-pack-result")],
                    &body,
                );
            }
        }
    });
    std::fs::write(tokens.join(format!("127.0.0.1_{}", server.port)), CANARY).unwrap();
    let mut settings = place.settings();
    settings.tokens = Some(tokens);
    let error = refused(
        &Git::new(settings),
        &reference(server.url("r"), COMMIT, FILE),
    );
    assert!(
        error.to_string().contains("you said Basic *** and ***"),
        "{error}"
    );
}

#[test]
fn damage_on_the_way_is_noticed_wherever_it_is() {
    let place = Place::new();
    let repository = Repository::new(place.path("repo.git"));
    let small = repository.commit(&[
        ("100644", FILE, b"kind: Addon\n"),
        ("100644", "large.bin", b""),
    ]);
    let list = git(
        &repository.path,
        &[
            "rev-list",
            "--objects",
            "--no-object-names",
            &small,
            "^main~1",
        ],
        b"",
    );
    let list = format!(
        "{list}\n{}",
        git(
            &repository.path,
            &[
                "ls-tree",
                "-r",
                "-t",
                "--format=%(objecttype) %(objectname)",
                &small
            ],
            b""
        )
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter(|(kind, _)| *kind != "commit")
        .map(|(_, id)| id)
        .collect::<Vec<_>>()
        .join("\n")
    );
    git(
        &repository.path,
        &["pack-objects", "-q", "one"],
        list.as_bytes(),
    );
    let pack = std::fs::read_dir(&repository.path)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| {
            path.extension()
                .is_some_and(|extension| extension == "pack")
        })
        .unwrap();
    let pack = std::fs::read(pack).unwrap();
    let good = sending(&pack);
    assert_eq!(
        place
            .git()
            .read(&reference(good.url("r"), &small, FILE))
            .unwrap(),
        b"kind: Addon\n"
    );
    drop(good);

    // The damaged pack gets a new checksum, so that the reader must find the damage itself.
    let body = &pack[..pack.len() - 20];
    let mut wrong = 0;
    for at in 0..body.len() {
        let mut damaged = body.to_vec();
        damaged[at] ^= 1 << (at % 8);
        let server = sending(&sealed(damaged));
        match place.git().read(&reference(server.url("r"), &small, FILE)) {
            // Some bits of a compressed stream have no effect, so the read may succeed.
            Ok(bytes) => assert_eq!(bytes, b"kind: Addon\n", "byte {at}"),
            Err(error) => {
                assert!(
                    matches!(kind(&error), "broken" | "too large"),
                    "byte {at}: {error}"
                );
                wrong += 1;
            }
        }
    }
    println!(
        "{wrong} of {} damaged packs were noticed, the rest were read right",
        body.len()
    );
    assert!(wrong * 2 > body.len());
}
