//! Fetches one commit, without its history, over a connection that the caller has opened.

use std::fs::File;
use std::io;
use std::num::NonZeroU32;
use std::path::Path;

use gix::ObjectId;
use gix::error::ErrorExt;
use gix::protocol::fetch::negotiate::{self, Action, Round};
use gix::protocol::fetch::{Arguments, Context, Negotiate, Options, Response, Shallow, Tags};
use gix::protocol::transport::Service;
use gix::protocol::transport::client::blocking_io::Transport;

use super::budget::Budget;
use super::cache::failed;
use super::error::Cause;
use super::objects::Objects;
use super::pack::RECEIVED;
use super::{Limits, chain};

/// Fetches a commit and all objects of its tree into a directory.
pub(super) fn receive(
    mut transport: impl Transport,
    commit: ObjectId,
    directory: &Path,
    limits: &Limits,
    budget: &Budget,
) -> Result<(), Cause> {
    let failure = |error: gix::Error| budget.verdict(|| said(&chain(&error), budget));
    let progress = &mut gix::progress::Discard;
    let mut handshake = gix::protocol::handshake(
        &mut transport,
        Service::UploadPack,
        |_| Ok(None),
        Vec::new(),
        progress,
    )
    .map_err(failure)?;
    let theirs = handshake
        .capabilities
        .capability("object-format")
        .and_then(|format| format.value().map(ToString::to_string))
        .unwrap_or_else(|| "sha1".to_owned());
    let ours = match commit.kind() {
        gix::hash::Kind::Sha256 => "sha256",
        _ => "sha1",
    };
    if theirs != ours {
        return Err(Cause::OtherHash {
            ours,
            theirs: budget.repeat(&theirs),
        });
    }

    let received = directory.join(RECEIVED);
    let mut file = File::create(&received).map_err(failed(&received))?;
    let mut wanted = Wanted {
        commit,
        over: limits.file_bytes,
        leaves_out: false,
    };
    gix::protocol::fetch(
        &mut wanted,
        |pack, _, _| {
            io::copy(pack, &mut file).map_err(|error| error.raise())?;
            Ok(true)
        },
        gix::progress::Discard,
        &std::sync::atomic::AtomicBool::new(false),
        Context {
            handshake: &mut handshake,
            transport: &mut transport,
            user_agent: (
                "agent",
                Some(concat!("bowline/", env!("CARGO_PKG_VERSION")).to_owned()),
            ),
            trace_packetlines: false,
        },
        Options {
            shallow_file: directory.join("shallow"),
            shallow: &Shallow::DepthAtRemote(NonZeroU32::MIN),
            tags: Tags::None,
            reject_shallow_remote: false,
        },
    )
    .map_err(failure)?;
    if wanted.leaves_out {
        Objects::note_left_out(directory, limits.file_bytes)?;
    }
    Ok(())
}

/// Converts the error message of a git server to the cause of a failed fetch.
fn said(words: &str, budget: &Budget) -> Cause {
    // In the message, the server's own text begins after `ERR`.
    let own = words.rsplit_once("ERR ").map_or(words, |(_, own)| own);
    let why = budget.repeat(own.trim_end_matches('"'));
    let has = |part: &str| words.contains(part);
    if has("not our ref") || has("unadvertised object") || has("does not exist") {
        Cause::NoCommit { why }
    } else if has("not found") || has("not appear to be a git repository") || has("not exported") {
        Cause::NoRepository { why }
    } else {
        Cause::Broken { why }
    }
}

/// The request for one commit. It names no commits that the client already has.
struct Wanted {
    commit: ObjectId,
    over: u64,
    leaves_out: bool,
}

impl Negotiate for Wanted {
    fn mark_complete_and_common_ref(&mut self) -> gix::Result<Action> {
        Ok(Action::MustNegotiate {
            remote_ref_target_known: Vec::new(),
        })
    }

    fn add_wants(&mut self, arguments: &mut Arguments, _: &[bool]) -> bool {
        // If the server supports filters, it is asked not to send files that are larger than the limit.
        self.leaves_out = arguments.can_use_filter();
        if self.leaves_out {
            arguments.filter(&format!("blob:limit={}", self.over.saturating_add(1)));
        }
        arguments.want(self.commit);
        true
    }

    fn one_round(
        &mut self,
        _: &mut negotiate::one_round::State,
        _: &mut Arguments,
        _: Option<&Response>,
    ) -> gix::Result<(Round, bool)> {
        let round = Round {
            haves_sent: 0,
            in_vain: 0,
            haves_to_send: 0,
            previous_response_had_at_least_one_in_common: false,
        };
        Ok((round, true))
    }
}
