//! Tests of the terminal code without an API. However the program ends, it must restore the terminal.

use rustix::process::Signal;

use crate::pty::{ENTER, Pty};

fn echo(part: &str, size: (u16, u16)) -> (Pty, tempfile::TempDir) {
    let home = tempfile::tempdir().unwrap();
    let program = std::env::current_exe().unwrap();
    let arguments = ["--play".to_owned(), part.to_owned()];
    let mut pty = Pty::start(program.to_str().unwrap(), &arguments, home.path(), size);
    pty.shows("held");
    assert!(!pty.has_its_settings(), "keys come unchanged");
    assert!(pty.screen().alternate_screen());
    assert!(pty.screen().hide_cursor());
    (pty, home)
}

/// The program restores the terminal when it ends by itself.
pub fn comes_back_at_the_end() {
    let (pty, _home) = echo("answers", (80, 24));
    pty.keys("q");
    let ended = pty.ended();
    assert!(ended.status.success(), "{:?}", ended.status);
    assert_eq!(ended.screen.contents(), "", "the first screen is as it was");
}

/// The program can distinguish typed keys from answers of the terminal, such as the background colour.
pub fn tells_what_comes_from_it() {
    let (mut pty, _home) = echo("answers", (80, 24));
    pty.shows("background(rgb { red: 16, green: 16, blue: 20 })");
    pty.paste("two\nlines ]11;rgb:0/0/0");
    pty.shows(r#"paste("two\nlines ]11;rgb:0/0/0")"#);
    pty.keys("\x1b[I");
    pty.shows("focus(true)");
    pty.keys("\x1b[<0;3;4M");
    pty.shows("column: 2, row: 3");
    pty.resize((60, 20));
    pty.shows("60x20");
    pty.keys("y");
    pty.shows("char('y')");
    pty.keys("q");
    let bytes = pty.ended().bytes;
    let copied = b"\x1b]52;c;Y29waWVk\x1b\\";
    assert!(bytes.windows(copied.len()).any(|part| part == copied));
}

/// After a panic, the program restores the terminal, and then prints the panic message.
pub fn comes_back_after_a_panic() {
    for (key, message) in [("p", "on purpose"), ("t", "in a task, on purpose")] {
        let (pty, _home) = echo("answers", (80, 24));
        pty.keys(key);
        let ended = pty.ended();
        let shown = ended.screen.contents();
        assert!(shown.contains(message), "{shown}");
        let leaves = b"\x1b[?1049l";
        let left = ended
            .bytes
            .windows(leaves.len())
            .position(|part| part == leaves);
        let printed = String::from_utf8_lossy(&ended.bytes).find("panicked at");
        assert!(left.unwrap() < printed.unwrap());
        assert_eq!(ended.status.success(), key == "t", "{:?}", ended.status);
    }
}

/// After an abort of the program, by itself or by another process, the terminal is restored.
pub fn comes_back_after_an_abort() {
    let (pty, _home) = echo("deaf", (80, 24));
    pty.keys("a");
    let ended = pty.ended();
    assert_eq!(ended.status.signal(), Some("Aborted"), "{:?}", ended.status);

    let (pty, _home) = echo("deaf", (80, 24));
    pty.signal(Signal::ABORT);
    let ended = pty.ended();
    assert_eq!(ended.status.signal(), Some("Aborted"), "{:?}", ended.status);
}

/// A signal ends the program, even if the program does not react to the signal. The terminal is restored.
pub fn comes_back_after_a_signal() {
    for (signal, name) in [
        (Signal::TERM, "Terminated"),
        (Signal::HUP, "Hangup"),
        (Signal::INT, "Interrupt"),
        (Signal::QUIT, "Quit"),
    ] {
        let (pty, _home) = echo("answers", (80, 24));
        pty.signal(signal);
        let ended = pty.ended();
        assert_eq!(ended.status.signal(), Some(name), "{:?}", ended.status);
        let shown = ended.screen.contents();
        assert!(shown.contains("ended in order"), "{shown}");
    }
    let (mut pty, _home) = echo("deaf", (80, 24));
    pty.signal(Signal::TERM);
    pty.shows("signal(end(15))");
    let ended = pty.ended();
    assert_eq!(ended.status.signal(), Some("Terminated"));
    assert!(!ended.screen.contents().contains("ended in order"));
}

/// While the program is suspended, the shell can use the terminal. After the program continues, it draws the
/// whole screen again.
pub fn sleeps_and_wakes() {
    let home = tempfile::tempdir().unwrap();
    let program = std::env::current_exe().unwrap();
    for how in ["key", "signal"] {
        // The script runs in a shell with job control. On a busy machine the shell also gets the terminal's answer about
        // its background, which ends in a backslash: without -r, the shell would wait for another line.
        let script = format!(
            "{} --play answers; echo asleep; read -r line; fg; echo ended $?",
            program.display()
        );
        let arguments = ["-mc".to_owned(), script];
        let mut pty = Pty::start("sh", &arguments, home.path(), (80, 24));
        pty.shows("held");
        match how {
            "key" => pty.keys("z"),
            _ => {
                let children = format!("/proc/{0}/task/{0}/children", pty.id());
                let child = std::fs::read_to_string(children).unwrap();
                let child: i32 = child.trim().parse().unwrap();
                let child = rustix::process::Pid::from_raw(child).unwrap();
                rustix::process::kill_process(child, Signal::TSTP).unwrap();
            }
        }
        pty.shows("asleep");
        assert!(!pty.screen().alternate_screen(), "the shell has its screen");
        assert!(!pty.screen().hide_cursor());
        assert!(pty.has_its_settings(), "and its settings");
        pty.keys(ENTER);
        pty.shows("held");
        assert!(pty.screen().alternate_screen());
        pty.shows("signal(continued)");
        pty.keys("q");
        let ended = pty.ended();
        assert!(ended.screen.contents().contains("ended 0"));
    }
    // Without a shell nobody could resume the program, so it does not suspend itself.
    let (mut pty, _home) = echo("answers", (80, 24));
    pty.keys("z");
    pty.shows("slept: false");
    pty.keys("q");
    pty.ended();
}

/// If many keys arrive at once, the program draws only a few frames.
pub fn draws_a_burst_at_once() {
    let (mut pty, _home) = echo("answers", (80, 24));
    pty.keys(&"j".repeat(3000));
    pty.keys("k");
    pty.shows("char('k')");
    pty.keys("q");
    let bytes = pty.ended().bytes;
    let frame = b"\x1b[?2026h";
    let frames = bytes
        .windows(frame.len())
        .filter(|part| part == frame)
        .count();
    println!("3,001 keys in {frames} frames");
    assert!(frames < 1000, "{frames}");
}
