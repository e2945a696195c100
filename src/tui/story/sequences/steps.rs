//! The steps of a random sequence. The seed of the sequence determines them.

pub(super) const PLACES: [(&str, &str); 6] = [
    ("cart", "dev"),
    ("cart", "staging"),
    ("cart", "prod"),
    ("ledger", "dev"),
    ("ledger", "staging"),
    ("ledger", "prod"),
];

/// A random number generator. The same seed always gives the same numbers.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    /// Returns the next random number of the SplitMix64 algorithm.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        let at = self.below(all.len() as u64);
        all[usize::try_from(at).unwrap()]
    }

    fn coin(&mut self) -> bool {
        self.below(2) == 0
    }
}

/// One step of a random sequence.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// Press these keys, which open no plan.
    Keys(&'static str),
    /// Run this command, which opens no plan.
    Command(&'static str),
    /// Open a plan with keys, wait until the screen shows it, and confirm or close it.
    Plan {
        keys: &'static str,
        confirm: bool,
    },
    /// Open a plan with a command, wait until the screen shows it, and confirm or close it.
    Commanded {
        line: &'static str,
        confirm: bool,
    },
    /// Open a plan with these keys, and cancel it before the screen shows it.
    Cancelled(&'static str),
    Resize(u16, u16),
    Foreign(Foreign),
    /// Let this number of seconds pass.
    Time(i64),
}

/// A change by another user or a controller. In each variant, the first `usize` is the index of the changed cell in
/// [`PLACES`].
#[derive(Clone, Copy, Debug)]
pub(super) enum Foreign {
    Moves(usize),
    Settles(usize),
    /// A controller writes the missing audit entries, then the status.
    Records(usize),
    /// A controller writes a snapshot. The flag says whether the ReleasePin's status names the snapshot.
    Snapshots(usize, bool),
    Fails(usize, &'static str),
    /// A user places a hold. The number is the time in seconds until the hold ends; None for a hold without an end.
    /// The flag says whether the hold names a release.
    Holds(usize, Option<i64>, bool),
    Lifts(usize),
    Releases(usize),
    Marks(usize),
    Collects(usize),
    Deletes(usize),
    Restores(usize),
    SecondPipeline(bool),
    Circle(bool),
    Environment(bool),
}

pub(super) fn step(dice: &mut Dice) -> Step {
    let place = |dice: &mut Dice| usize::try_from(dice.below(PLACES.len() as u64)).unwrap();
    match dice.below(20) {
        0..=4 => Step::Keys(dice.of(&[
            "j",
            "k",
            "h",
            "l",
            "g g",
            "G",
            "space",
            "*",
            "s",
            "esc",
            "g r",
            "g p",
            "g s",
            "g m",
            "enter",
            "T",
            "[",
            "]",
            "t",
            "n",
            "ctrl-c",
            "/ c enter",
            "?",
            "d",
            "g v",
            "g a",
            "tab",
            "tab",
            "alt-right",
            "p",
            "f",
            "e",
            "S",
            "c",
            "esc tab",
            "g r esc",
            "* P esc",
        ])),
        5 => match dice.below(3) {
            0 => {
                Step::Command(dice.of(&["at 12:00", "at 3m ago", "at 2026-01-06 12:30", "at 9999"]))
            }
            1 => Step::Commanded {
                line: dice.of(&["pin 30s", "pin 2h", "pin 3d"]),
                confirm: dice.coin(),
            },
            _ => Step::Plan {
                keys: dice.of(&["* P", "* H", "* R", "* U", "* D"]),
                confirm: true,
            },
        },
        6..=7 => Step::Plan {
            keys: dice.of(&["P", "D", "R", "H", "U", "Z", "B", "A", "X"]),
            confirm: dice.coin(),
        },
        8 => Step::Cancelled(dice.of(&["P esc", "D esc", "R esc", "H esc", "Z ctrl-c"])),
        9..=10 => {
            let (width, height) = dice.of(&[(200, 60), (120, 36), (80, 24), (40, 10), (61, 17)]);
            Step::Resize(width, height)
        }
        11..=12 => Step::Time(dice.of(&[1, 9, 61, 600, 4_000, 90_000])),
        _ => {
            let at = place(dice);
            Step::Foreign(match dice.below(19) {
                16 | 17 => Foreign::Records(at),
                18 => Foreign::Snapshots(at, dice.coin()),
                0..=2 => Foreign::Moves(at),
                3..=5 => Foreign::Settles(at),
                6 => Foreign::Fails(at, dice.of(&["Degraded", "GitFetchFailed", "Progressing"])),
                7..=8 => {
                    let until = dice.of(&[None, Some(30), Some(300), Some(5_000)]);
                    Foreign::Holds(at, until, dice.coin())
                }
                9 => Foreign::Lifts(at),
                10 => Foreign::Releases(at),
                11 => Foreign::Marks(at),
                12 => Foreign::Collects(at),
                13 => match dice.coin() {
                    true => Foreign::Deletes(at),
                    false => Foreign::Restores(at),
                },
                14 => match dice.coin() {
                    true => Foreign::SecondPipeline(dice.coin()),
                    false => Foreign::Circle(dice.coin()),
                },
                _ => Foreign::Environment(dice.coin()),
            })
        }
    }
}
