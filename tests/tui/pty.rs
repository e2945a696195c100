//! Runs a program in a pseudo-terminal, and keeps the screen that a user would see.
//!
//! No function sleeps for a fixed time, because each wait ends with the next output of the program. If a wait
//! takes too long, the test fails with the current screen.

use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, ExitStatus, MasterPty, PtySize, SlavePty};
use rustix::process::{Pid, Signal, kill_process};
use vt100::Screen;

use crate::HANG;
use crate::escapes;

/// The key Escape, which goes back. This encoding of the key cannot be the start of another sequence.
pub const ESC: &str = "\x1b[27u";
/// The key Ctrl-Q, which quits from every screen. This encoding of the key cannot be the start of another
/// sequence.
pub const LEAVE: &str = "\x1b[113;5u";
/// The key Enter, which confirms.
pub const ENTER: &str = "\r";

/// What the program has written to the terminal so far.
struct Written {
    terminal: vt100::Parser,
    bytes: Vec<u8>,
    is_over: bool,
}

/// A program in a pseudo-terminal. Dropping the value kills the program.
pub struct Pty {
    master: Box<dyn MasterPty + Send>,
    /// The end of the pseudo-terminal that the program uses. It stays open, so that the terminal still exists
    /// after the program has ended.
    slave: Option<Box<dyn SlavePty + Send>>,
    child: Box<dyn Child + Send + Sync>,
    keyboard: Arc<Mutex<Box<dyn Write + Send>>>,
    written: Arc<(Mutex<Written>, Condvar)>,
    reader: Option<JoinHandle<()>>,
    /// The settings of the terminal before the start of the program.
    settings: String,
}

/// The result of an ended program: the exit status, the whole output and the last screen.
pub struct Ended {
    pub status: ExitStatus,
    pub bytes: Vec<u8>,
    pub screen: Screen,
}

impl Pty {
    /// Starts a program in a terminal of this size (columns, rows). Its environment contains only HOME, PATH,
    /// USER and a few terminal settings.
    pub fn start(program: &str, arguments: &[String], home: &Path, size: (u16, u16)) -> Pty {
        let (columns, rows) = size;
        let pair = portable_pty::native_pty_system()
            .openpty(pty_size(size))
            .unwrap();
        let mut command = CommandBuilder::new(program);
        command.args(arguments);
        command.cwd(home);
        command.env_clear();
        for (name, value) in [
            ("HOME", home.to_str().unwrap()),
            ("PATH", &std::env::var("PATH").unwrap()),
            ("USER", "ana"),
            ("TERM", "xterm-256color"),
            ("COLORTERM", "truecolor"),
            ("LANG", "C.UTF-8"),
            ("TZ", "UTC"),
        ] {
            command.env(name, value);
        }
        let settings = settings(&*pair.master);
        let child = pair.slave.spawn_command(command).unwrap();
        let terminal = vt100::Parser::new(cells(rows), cells(columns), 0);
        let written = Arc::new((
            Mutex::new(Written {
                terminal,
                bytes: Vec::new(),
                is_over: false,
            }),
            Condvar::new(),
        ));
        let keyboard = Arc::new(Mutex::new(pair.master.take_writer().unwrap()));
        let reader = pair.master.try_clone_reader().unwrap();
        let reader = {
            let (written, keyboard) = (written.clone(), keyboard.clone());
            std::thread::spawn(move || read(reader, &written, &keyboard))
        };
        Pty {
            master: pair.master,
            slave: Some(pair.slave),
            child,
            keyboard,
            written,
            reader: Some(reader),
            settings,
        }
    }

    /// Starts bowline in a terminal of this size (columns, rows).
    pub fn bowline(arguments: &[String], home: &Path, size: (u16, u16)) -> Pty {
        Pty::start(env!("CARGO_BIN_EXE_bowline"), arguments, home, size)
    }

    /// Types keys into the terminal, as the bytes that the keys send.
    pub fn keys(&self, keys: &str) {
        let mut keyboard = self.keyboard.lock().unwrap();
        keyboard.write_all(keys.as_bytes()).unwrap();
        keyboard.flush().unwrap();
    }

    /// Pastes text into the terminal, as bracketed paste.
    pub fn paste(&self, text: &str) {
        self.keys(&format!("\x1b[200~{text}\x1b[201~"));
    }

    /// Changes the size of the terminal to (columns, rows).
    pub fn resize(&self, size: (u16, u16)) {
        let (columns, rows) = size;
        let (written, _) = &*self.written;
        let mut written = written.lock().unwrap();
        written
            .terminal
            .screen_mut()
            .set_size(cells(rows), cells(columns));
        self.master.resize(pty_size(size)).unwrap();
    }

    /// Returns the process id of the program.
    pub fn id(&self) -> u32 {
        self.child.process_id().unwrap()
    }

    /// Sends a signal to the running program.
    pub fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.id()).unwrap();
        kill_process(Pid::from_raw(id).unwrap(), signal).unwrap();
    }

    /// Waits until `is_so` is true for the screen. Returns how long the wait took.
    pub fn wait_for(&mut self, what: &str, is_so: impl Fn(&Screen) -> bool) -> Duration {
        let began = Instant::now();
        let (written, changed) = &*self.written;
        let mut written = written.lock().unwrap();
        while !is_so(written.terminal.screen()) {
            let waited = began.elapsed();
            let ended = self.child.try_wait().unwrap();
            if waited > HANG || written.is_over || ended.is_some() {
                let screen = written.terminal.screen().contents();
                panic!("not seen after {waited:?}: {what} ({ended:?}); the screen is:\n{screen}");
            }
            // The end of the program causes no output, so the loop checks for it every 200 ms.
            let short = Duration::from_millis(200);
            written = changed.wait_timeout(written, short).unwrap().0;
        }
        began.elapsed()
    }

    /// Waits until the screen shows a text. Returns how long the wait took.
    pub fn shows(&mut self, text: &str) -> Duration {
        self.wait_for(&format!("{text:?}"), |screen| {
            screen.contents().contains(text)
        })
    }

    /// Waits until the screen no longer shows a text. Returns how long the wait took.
    pub fn hides(&mut self, text: &str) -> Duration {
        self.wait_for(&format!("no {text:?}"), |screen| {
            !screen.contents().contains(text)
        })
    }

    /// Returns the current screen.
    pub fn screen(&self) -> Screen {
        let (written, _) = &*self.written;
        written.lock().unwrap().terminal.screen().clone()
    }

    /// Returns the number of bytes that the program has written so far.
    pub fn bytes(&self) -> usize {
        let (written, _) = &*self.written;
        written.lock().unwrap().bytes.len()
    }

    /// Types keys, and waits until the program has drawn the next frame.
    pub fn draws(&mut self, keys: &str) {
        let before = self.bytes();
        self.keys(keys);
        let began = Instant::now();
        {
            let (written, changed) = &*self.written;
            let mut written = written.lock().unwrap();
            while written.bytes.len() == before {
                let screen = written.terminal.screen().contents();
                assert!(
                    began.elapsed() < HANG,
                    "nothing is drawn for {keys}:\n{screen}"
                );
                written = changed.wait_timeout(written, HANG).unwrap().0;
            }
        }
        self.settles();
    }

    /// Waits until the program has written a complete frame.
    pub fn settles(&self) {
        let (written, changed) = &*self.written;
        let mut written = written.lock().unwrap();
        let began = Instant::now();
        while !written.bytes.ends_with(b"\x1b[?2026l") && !written.bytes.ends_with(b"\x1b\\") {
            assert!(began.elapsed() < HANG, "a frame without an end");
            written = changed.wait_timeout(written, HANG).unwrap().0;
        }
    }

    /// Waits until a program without a screen has ended. Returns its exit code and its output.
    pub fn printed(mut self) -> (u32, Vec<u8>) {
        let status = self.wait();
        drop(self.slave.take());
        self.reader.take().unwrap().join().unwrap();
        let (written, _) = &*self.written;
        let bytes = written.lock().unwrap().bytes.clone();
        (status.exit_code(), bytes)
    }

    /// Returns whether the terminal has the same settings as before the program started.
    pub fn has_its_settings(&self) -> bool {
        settings(&*self.master) == self.settings
    }

    /// Waits until the program has ended. Checks that the terminal has its old settings again, and that the
    /// program wrote only allowed escape sequences.
    pub fn ended(mut self) -> Ended {
        let status = self.wait();
        let now = settings(&*self.master);
        drop(self.slave.take());
        self.reader.take().unwrap().join().unwrap();
        let (written, _) = &*self.written;
        let written = written.lock().unwrap();
        let screen = written.terminal.screen().clone();
        assert_eq!(now, self.settings, "the terminal is set as before");
        assert!(!screen.alternate_screen(), "the first screen is back");
        assert!(!screen.hide_cursor(), "the cursor is back");
        assert!(!screen.bracketed_paste(), "pastes come as they are");
        assert_eq!(screen.mouse_protocol_mode(), vt100::MouseProtocolMode::None);
        escapes::check(&written.bytes).unwrap();
        Ended {
            status,
            bytes: written.bytes.clone(),
            screen,
        }
    }

    fn wait(&mut self) -> ExitStatus {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            let (written, changed) = &*self.written;
            let written = written.lock().unwrap();
            if began.elapsed() > HANG {
                let screen = written.terminal.screen().contents();
                panic!("it does not end; the screen is:\n{screen}");
            }
            drop(changed.wait_timeout(written, Duration::from_millis(20)));
        }
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads the output of the program until the program ends. Answers its query for the background colour, as a
/// terminal does.
fn read(
    mut reader: Box<dyn Read + Send>,
    written: &(Mutex<Written>, Condvar),
    keyboard: &Mutex<Box<dyn Write + Send>>,
) {
    let (written, changed) = written;
    let mut buffer = [0; 64 * 1024];
    let mut is_asked = false;
    loop {
        let count = reader.read(&mut buffer).unwrap_or(0);
        let Ok(mut written) = written.lock() else {
            // Another thread of the test has already panicked.
            return;
        };
        if count == 0 {
            written.is_over = true;
            changed.notify_all();
            return;
        }
        written.terminal.process(&buffer[..count]);
        written.bytes.extend_from_slice(&buffer[..count]);
        let question = b"\x1b]11;?";
        let asks = !is_asked && written.bytes.windows(question.len()).any(|w| w == question);
        changed.notify_all();
        drop(written);
        if asks {
            is_asked = true;
            let answer = b"\x1b]11;rgb:1010/1010/1414\x1b\\";
            keyboard.lock().unwrap().write_all(answer).unwrap();
        }
    }
}

fn pty_size((cols, rows): (u16, u16)) -> PtySize {
    PtySize {
        rows,
        cols,
        pixel_width: 0,
        pixel_height: 0,
    }
}

fn cells(count: u16) -> NonZeroU16 {
    count.try_into().unwrap()
}

fn settings(master: &(dyn MasterPty + Send)) -> String {
    format!("{:?}", master.get_termios().unwrap())
}
