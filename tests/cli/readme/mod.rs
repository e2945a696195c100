//! Runs the commands in the code blocks of the README and of the pages in docs, in their order and in a new
//! home. Each command must end as the table says. The table also lists the blocks that cannot run, with the
//! reason.
//!
//! A new block fails until the table contains it. To add a block, write its page and the start of its first
//! line. Then write the exit code and a part of the output for each command, or the reason why the block does
//! not run.

mod table;

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::PROGRAM;
use super::cluster::{Cluster, Options};
use table::{Entry, How, Place, TABLE};

/// The pages with code blocks that are not in the directory docs.
const PAGES: [&str; 3] = [
    "README.md",
    "deploy/examples/README.md",
    "deploy/example-repository/README.md",
];

/// A fenced code block of a documentation page.
struct Block {
    page: String,
    line: usize,
    text: Vec<String>,
}

impl Block {
    fn first(&self) -> &str {
        self.text.first().map_or("", |line| line.as_str())
    }

    /// Returns the commands in this block, without prompts, comments and sample output.
    fn commands(&self) -> Vec<String> {
        let has_prompts = self.text.iter().any(|line| line.starts_with("$ "));
        let mut joined: Vec<String> = Vec::new();
        let mut goes_on = false;
        for line in &self.text {
            let line = match (has_prompts, line.strip_prefix("$ ")) {
                (true, Some(command)) => command,
                (true, None) => continue,
                (false, _) => line.as_str(),
            };
            let (line, more) = match line.strip_suffix('\\') {
                Some(line) => (line, true),
                None => (line, false),
            };
            match joined.last_mut().filter(|_| goes_on) {
                Some(last) => *last = format!("{} {}", last.trim(), line.trim()),
                None => joined.push(line.trim().to_owned()),
            }
            goes_on = more;
        }
        joined.iter().map(|line| command(line)).collect()
    }
}

/// Removes the comment at the end of a command. A comment begins after ` #` or after three spaces.
fn command(line: &str) -> String {
    let line = line.split(" #").next().unwrap_or_default();
    let line = line.split("   ").next().unwrap_or_default();
    line.trim().to_owned()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn pages() -> Vec<String> {
    let mut docs: Vec<String> = fs::read_dir(root().join("docs"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".md"))
        .map(|name| format!("docs/{name}"))
        .collect();
    docs.sort();
    PAGES
        .iter()
        .map(|&page| page.to_owned())
        .chain(docs)
        .collect()
}

fn blocks(page: &str) -> Vec<Block> {
    let text = fs::read_to_string(root().join(page)).unwrap();
    let mut found: Vec<Block> = Vec::new();
    let mut inside = false;
    for (at, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            inside = !inside;
            if inside {
                found.push(Block {
                    page: page.to_owned(),
                    line: at + 2,
                    text: Vec::new(),
                });
            }
        } else if let Some(block) = found.last_mut().filter(|_| inside) {
            block.text.push(line.to_owned());
        }
    }
    assert!(!inside, "{page}: a block does not end");
    found
}

fn entry(block: &Block) -> Option<&'static Entry> {
    TABLE
        .iter()
        .find(|entry| entry.page == block.page && block.first().starts_with(entry.begins))
}

#[test]
fn every_block_runs_or_says_why_not() {
    let mut unknown = Vec::new();
    let mut used = BTreeSet::new();
    for block in pages().iter().flat_map(|page| blocks(page)) {
        let name = format!("{}:{} {:?}", block.page, block.line, block.first());
        match entry(&block) {
            Some(entry) => {
                used.insert((entry.page, entry.begins));
                if let How::NotRun(why) = &entry.how {
                    println!("not run: {name}: {why}");
                }
            }
            None => unknown.push(name),
        }
    }
    assert!(
        unknown.is_empty(),
        "say in tests/cli/readme/table.rs how these blocks run, or why not:\n{}",
        unknown.join("\n")
    );
    let gone: Vec<&Entry> = TABLE
        .iter()
        .filter(|entry| !used.contains(&(entry.page, entry.begins)))
        .collect();
    assert!(gone.is_empty(), "these blocks are gone: {gone:?}");
}

/// A new home directory for commands. The program is on the PATH, and the working directory contains deploy/.
struct Home {
    directory: tempfile::TempDir,
    variables: Vec<(&'static str, PathBuf)>,
    tools: Vec<PathBuf>,
}

impl Home {
    fn new() -> Home {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        for name in ["home", "bin", "work", "said"] {
            fs::create_dir(path.join(name)).unwrap();
        }
        std::os::unix::fs::symlink(PROGRAM, path.join("bin/bowline")).unwrap();
        std::os::unix::fs::symlink(root().join("deploy"), path.join("work/deploy")).unwrap();
        let tools = vec![path.join("bin")];
        Home {
            directory,
            variables: Vec::new(),
            tools,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Runs commands one after the other in the same shell. Returns the exit code and the output of each
    /// command.
    fn shell(&self, commands: &[String]) -> Vec<(i32, String)> {
        let mut script = String::new();
        for (at, command) in commands.iter().enumerate() {
            let said = self.path("said").join(at.to_string());
            let said = said.display();
            // Braces run the command in this shell, so that a `cd` also changes the directory of the next
            // command.
            script += &format!("{{ {command}\n}} >{said}.out 2>&1; echo $? >{said}.code\n");
        }
        let inherited = std::env::var_os("PATH").unwrap();
        let tools = self.tools.iter().cloned();
        let path = std::env::join_paths(tools.chain(std::env::split_paths(&inherited))).unwrap();
        let status = Command::new("bash")
            .args(["-c", &script])
            .current_dir(self.path("work"))
            .env_clear()
            .env("HOME", self.path("home"))
            .env("USER", "ana")
            .env("PATH", path)
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .status()
            .unwrap();
        assert!(status.success(), "{script}");
        let read = |at: usize, what: &str| {
            fs::read_to_string(self.path("said").join(format!("{at}.{what}"))).unwrap()
        };
        let ended = |at| (read(at, "code").trim().parse().unwrap(), read(at, "out"));
        (0..commands.len()).map(ended).collect()
    }

    /// Runs the blocks of a page that the table assigns to this place, in the order of the page.
    fn run(&self, page: &str, place: Place) {
        for block in blocks(page) {
            let Some(Entry {
                how: How::Runs(of, before, lines),
                ..
            }) = entry(&block)
            else {
                continue;
            };
            if *of != place {
                continue;
            }
            let name = format!("{page}:{}", block.line);
            let found = block.commands();
            let expected: Vec<&str> = lines.iter().map(|line| line.command).collect();
            assert_eq!(found, expected, "{name} has other commands than the table");
            let mut commands: Vec<String> = before.iter().map(|&it| it.to_owned()).collect();
            commands.extend(lines.iter().map(|line| match line.not_run {
                None => format!("{}{}", line.command, line.adds),
                Some(_) => "true".to_owned(),
            }));
            let ended = self.shell(&commands);
            let (setup, ended) = ended.split_at(before.len());
            for (command, (code, said)) in before.iter().zip(setup) {
                assert_eq!(*code, 0, "{name}: before it, {command}: {said}");
            }
            for (line, (code, said)) in lines.iter().zip(ended) {
                match line.not_run {
                    Some(why) => println!("not run: {name} {:?}: {why}", line.command),
                    None => {
                        let command = line.command;
                        println!("{name} {command}: {code}");
                        assert_eq!(*code, line.code, "{name} {command}: {said}");
                        assert!(
                            said.contains(line.says),
                            "{name} {command}: no {:?} in {said}",
                            line.says
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn the_blocks_of_the_readme_run_line_by_line_on_a_new_store() {
    Home::new().run("README.md", Place::Store);
}

#[test]
fn the_blocks_of_the_docs_run_on_a_new_store() {
    for page in pages().iter().filter(|page| *page != "README.md") {
        Home::new().run(page, Place::Store);
    }
}

#[test]
fn the_blocks_for_a_repository_run_on_a_new_repository() {
    for page in pages() {
        Home::new().run(&page, Place::Repository);
    }
}

#[test]
fn the_blocks_for_a_cluster_run_on_a_new_cluster() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let Some(cluster) = runtime.block_on(Cluster::start(Options::default())) else {
        return;
    };
    let kubectl = PathBuf::from(cluster.kubectl().get_program());
    the_blocks_for_a_served_store_run_on_a_free_port(&kubectl);
    for page in pages() {
        let mut home = Home::new();
        home.variables.push(("KUBECONFIG", cluster.kubeconfig()));
        home.tools.push(kubectl.parent().unwrap().to_owned());
        home.run(&page, Place::Cluster);
    }
}

/// Runs the blocks that start `bowline serve` and use kubectl on that server.
fn the_blocks_for_a_served_store_run_on_a_free_port(kubectl: &Path) {
    let home = tempfile::tempdir().unwrap();
    let examples = root().join("deploy/examples");
    let app = "{apiVersion: v1, kind: ConfigMap, metadata: {name: app}}";
    fs::write(home.path().join("app.yaml"), app).unwrap();
    for line in [
        &["apply", "-R", "-f", examples.to_str().unwrap()][..],
        &["release", "create", "cart", "--version", "1"],
    ] {
        let (code, _, said) = super::run(home.path(), line);
        assert_eq!(code, 0, "{said}");
    }
    let serving = super::serve(home.path());
    let address = serving.1.to_string();
    let mut run = 0;
    for block in pages().iter().flat_map(|page| blocks(page)) {
        let Some(Entry {
            how: How::Served, ..
        }) = entry(&block)
        else {
            continue;
        };
        for line in block.commands() {
            run += 1;
            let line = line.replace("127.0.0.1:8001", &address);
            let words: Vec<&str> = line.split(' ').collect();
            if words[..2] == ["bowline", "serve"] {
                // The test has already started the server on a free port, so it only checks the line that the
                // page shows.
                assert!(
                    block
                        .text
                        .contains(&"listening on http://127.0.0.1:8001".to_owned())
                );
                continue;
            }
            assert_eq!(words[0], "kubectl", "{line}");
            let mut child = Command::new(kubectl)
                .args(&words[1..])
                .env_clear()
                .env("HOME", home.path())
                .current_dir(home.path())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            if words.contains(&"-w") {
                let mut first = String::new();
                let out = child.stdout.take().unwrap();
                BufReader::new(out).read_line(&mut first).unwrap();
                child.kill().unwrap();
                child.wait().unwrap();
                assert!(first.starts_with("NAME"), "{line}: {first}");
                continue;
            }
            let output = child.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{line}: {said}");
        }
    }
    assert_eq!(run, 4, "the commands that run on a served store");
}

#[test]
fn samples_of_messages_are_the_real_messages() {
    for block in pages().iter().flat_map(|page| blocks(page)) {
        let Some(Entry {
            how: How::Message(real),
            ..
        }) = entry(&block)
        else {
            continue;
        };
        let (sample, real) = (block.text.join("\n"), real());
        let fits = match sample.strip_suffix("...") {
            Some(begin) => real.starts_with(begin),
            None => real == sample,
        };
        assert!(fits, "{}:{}\n{sample}\n{real}", block.page, block.line);
    }
}

#[test]
fn comments_are_no_part_of_a_command() {
    for (line, read) in [
        ("bowline status", "bowline status"),
        ("bowline status   # what runs where", "bowline status"),
        ("bowline status     what runs where", "bowline status"),
        (
            "bowline pin a --reason \"x y\"  # z",
            "bowline pin a --reason \"x y\"",
        ),
    ] {
        assert_eq!(command(line), read);
    }
}
