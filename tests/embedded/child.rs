//! Starts other processes for a test. Each process runs this test program again, in another role.

use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

/// Another process, which uses the same store file. Dropping the value kills the process.
pub struct Other {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Other {
    /// Starts a process in the role `part`, which must be a role that `play` knows.
    pub fn start(part: &str, file: &Path, arguments: &str) -> Other {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child::play", "--ignored", "--nocapture"])
            .env("BOWLINE_PART", part)
            .env("BOWLINE_PART_FILE", file)
            .env("BOWLINE_PART_ARGUMENTS", arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Other { process, lines }
    }

    /// Returns the words of the next message from the process; None if the process has ended.
    pub fn says(&mut self) -> Option<Vec<String>> {
        loop {
            let line = self.lines.next()?.ok()?;
            // The test harness may print text before the message on the same line.
            if let Some((_, said)) = line.split_once("SAYS ") {
                return Some(said.split(' ').map(str::to_owned).collect());
            }
        }
    }

    /// Lets the process continue after it has called [`get_ready`].
    pub fn go(&mut self) {
        use std::io::Write;
        let input = self.process.stdin.as_mut().unwrap();
        input.write_all(b"go\n").unwrap();
    }

    /// Kills the process with SIGKILL.
    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Waits until the process has ended, and asserts that it succeeded.
    pub fn ends_well(mut self) {
        while self.says().is_some() {}
        assert!(self.process.wait().unwrap().success());
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// Sends a message from a started process to its parent process.
pub fn say(words: &str) {
    println!("SAYS {words}");
}

/// Tells the parent process that this process is ready. Then waits until the parent calls `go`.
pub fn get_ready() {
    say("ready");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
}

#[test]
#[ignore = "a part of other tests, which start it in a process of its own"]
fn play() {
    let Ok(part) = std::env::var("BOWLINE_PART") else {
        return;
    };
    let file = std::env::var_os("BOWLINE_PART_FILE").unwrap();
    let file = Path::new(&file);
    let arguments = std::env::var("BOWLINE_PART_ARGUMENTS").unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        match part.as_str() {
            "write" => super::kill::write(file, &arguments).await,
            "delete" => super::recovery::delete(file, &arguments).await,
            "share" => super::processes::share(file, &arguments).await,
            "answer" => super::processes::answer(file, &arguments).await,
            "remember" => super::memory::remember(file, &arguments).await,
            other => panic!("there is no part {other}"),
        }
    });
}
