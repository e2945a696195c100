use proptest::prelude::*;

use super::*;

const ALL: Allowed = Allowed {
    file: true,
    loopback_http: true,
};

#[test]
fn what_is_accepted_has_one_form() {
    for (given, form) in [
        (
            "https://example.com/team/repo.git",
            "https://example.com/team/repo.git",
        ),
        (
            "HTTPS://Example.COM/team/repo/",
            "https://example.com/team/repo",
        ),
        ("https://example.com:443/r", "https://example.com/r"),
        ("https://example.com:8443/r", "https://example.com:8443/r"),
        ("https://[2001:DB8::1]/r", "https://[2001:db8::1]/r"),
        (
            "https://example.com/my%20repo",
            "https://example.com/my%20repo",
        ),
        (
            "https://dev.azure.com/a/b/_git/c",
            "https://dev.azure.com/a/b/_git/c",
        ),
        ("http://127.0.0.1:8080/r", "http://127.0.0.1:8080/r"),
        ("http://[::1]:8080/r", "http://[::1]:8080/r"),
        ("http://localhost/r", "http://localhost/r"),
        (
            "ssh://git@example.com/team/repo.git",
            "ssh://git@example.com/team/repo.git",
        ),
        (
            "ssh://example.com:2222/team/repo",
            "ssh://example.com:2222/team/repo",
        ),
        (
            "ssh://git@example.com/~ana/repo",
            "ssh://git@example.com/~ana/repo",
        ),
        (
            "git@github.com:team/repo.git",
            "git@github.com:team/repo.git",
        ),
        (
            "git@github.com:/srv/repo.git",
            "git@github.com:/srv/repo.git",
        ),
        ("/srv/git/repo.git", "file:///srv/git/repo.git"),
        ("/srv/git/repo.git/", "file:///srv/git/repo.git"),
        ("file:///srv/git/a b", "file:///srv/git/a b"),
    ] {
        let address = parse(given, ALL).unwrap_or_else(|error| panic!("{given}: {error}"));
        assert_eq!(address.as_str(), form);
        assert_eq!(
            parse(form, ALL).unwrap(),
            address,
            "{given}: the form is its own form"
        );
    }
}

#[test]
fn the_remote_command_gets_the_path_that_git_would_send() {
    for (given, expected) in [
        ("ssh://h/team/repo", "/team/repo"),
        ("ssh://h/~ana/repo", "~ana/repo"),
        ("git@h:team/repo", "team/repo"),
        ("git@h:/team/repo", "/team/repo"),
    ] {
        let Transport::Ssh { path, .. } = parse(given, ALL).unwrap().transport else {
            panic!("{given} is ssh");
        };
        assert_eq!(path, expected, "{given}");
    }
}

#[test]
fn what_is_not_spelled_out_is_refused() {
    use AddressError as E;
    let long = format!("https://example.com/{}", "a".repeat(3000));
    let scheme = |name: &str| E::Scheme(name.to_owned());
    let helper = |name: &str| E::RemoteHelper(name.to_owned());
    let cases: Vec<(&str, E)> = vec![
        ("", E::Empty),
        (&long, E::TooLong),
        ("-oProxyCommand=touch /tmp/x", E::LeadingDash),
        ("--upload-pack=touch", E::LeadingDash),
        ("git://example.com/r", scheme("git")),
        ("ftp://example.com/r", scheme("ftp")),
        ("git+ssh://example.com/r", scheme("git+ssh")),
        ("javascript://example.com/r", scheme("javascript")),
        ("data://x/r", scheme("data")),
        ("ext::sh -c touch% /tmp/x", helper("ext")),
        ("fd::17", helper("fd")),
        ("http::http://example.com/r", helper("http")),
        ("http://example.com/r", E::PlainHttp),
        ("http://127.0.0.1.example.com/r", E::PlainHttp),
        ("http://10.0.0.1/r", E::PlainHttp),
        ("http://169.254.169.254/latest", E::PlainHttp),
        ("https://user:secret@example.com/r", E::Credentials),
        ("https://token@example.com/r", E::Credentials),
        ("https://user%40example.com/r", E::Credentials),
        ("ssh://git:secret@example.com/r", E::Credentials),
        ("git:secret@example.com:r", E::Credentials),
        ("https://example.com/r?token=secret", E::Query),
        ("https://example.com/r#x", E::Query),
        ("https://example.com", E::Path),
        ("https://example.com/", E::Path),
        ("https:///r", E::Host),
        ("https://-oProxyCommand=x/r", E::Host),
        ("https://.example.com/r", E::Host),
        ("https://example..com/r", E::Host),
        ("https://exa_mple.com:/r", E::Port),
        ("https://example.com:0/r", E::Port),
        ("https://example.com:99999/r", E::Port),
        ("https://example.com:+80/r", E::Port),
        ("https://example.com:80a/r", E::Port),
        ("https://[::1/r", E::Port),
        ("https://[zz]/r", E::Host),
        ("https://exam ple.com/r", E::Character),
        ("https://example.com/r\n", E::Character),
        ("https://example.com/r\0", E::Character),
        ("https://example.com/\u{202e}r", E::Character),
        ("https://ex\u{e4}mple.com/r", E::Character),
        ("https://example.com/../etc", E::Path),
        ("https://example.com/a/./b", E::Path),
        ("https://example.com/a//b", E::Path),
        ("https://example.com/%2e%2e/b", E::Path),
        ("https://example.com/a%2fb", E::Path),
        ("https://example.com/a%00b", E::Path),
        ("https://example.com/a%0ab", E::Path),
        ("https://example.com/a%zzb", E::Path),
        ("https://example.com/a%2", E::Path),
        ("https://example.com/a\\b", E::Path),
        ("https://example.com/-a", E::Path),
        ("ssh://-oProxyCommand=touch/r", E::Host),
        ("ssh://git@-oProxyCommand=touch/r", E::Host),
        ("ssh://-oProxyCommand=touch@example.com/r", E::User),
        ("ssh://example.com/-r", E::Path),
        ("ssh://example.com/r'; touch /tmp/x; '", E::Character),
        ("ssh://example.com/r';touch;'", E::Path),
        ("ssh://example.com/$(touch)", E::Path),
        ("ssh://example.com/`touch`", E::Path),
        ("ssh://example.com/a%20b", E::Path),
        ("-git@example.com:r", E::LeadingDash),
        ("git@-example.com:r", E::Host),
        ("git@example.com:-r", E::Path),
        ("git@example.com:", E::Path),
        ("git@example.com:a;b", E::Path),
        ("example.com:r", E::Relative),
        ("C:\\repo", E::Relative),
        ("../repo", E::Relative),
        ("repo", E::Relative),
        ("./-repo", E::Relative),
        ("~/repo", E::Relative),
        ("file://host/r", E::Host),
        ("file://../r", E::Host),
        ("file:relative", E::Relative),
        ("//host/share", E::Path),
        ("/", E::Path),
        ("/srv/../etc", E::Path),
        ("file:///srv//r", E::Path),
        ("/srv/\u{7}", E::Character),
    ];
    for (given, expected) in &cases {
        assert_eq!(parse(given, ALL).as_ref(), Err(expected), "{given:?}");
    }
    assert!(cases.len() > 60);
}

#[test]
fn only_what_is_allowed_beside_https_and_ssh_passes() {
    let none = Allowed::default();
    assert_eq!(parse("/srv/r", none), Err(AddressError::FileNotAllowed));
    assert_eq!(
        parse("file:///srv/r", none),
        Err(AddressError::FileNotAllowed)
    );
    assert_eq!(
        parse("http://127.0.0.1/r", none),
        Err(AddressError::PlainHttp)
    );
    assert!(parse("https://example.com/r", none).is_ok());
    assert!(parse("git@example.com:r", none).is_ok());
}

#[test]
fn a_revision_is_a_full_id_and_nothing_else() {
    let sha1 = "0123456789abcdef0123456789abcdef01234567";
    let sha256 = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    assert_eq!(parse_revision(sha1).unwrap().to_string(), sha1);
    assert_eq!(parse_revision(sha256).unwrap().to_string(), sha256);
    for wrong in [
        "",
        "main",
        "HEAD",
        "0123456",
        "v1.2.3",
        "-0123456789abcdef0123456789abcdef0123456",
        "0123456789ABCDEF0123456789ABCDEF01234567",
        "0123456789abcdef0123456789abcdef0123456g",
        "0123456789abcdef0123456789abcdef01234567 ",
        "0123456789abcdef0123456789abcdef01234567\n",
        "0000000000000000000000000000000000000000",
        "0123456789abcdef0123456789abcdef01234567^",
        "refs/heads/main",
        "--upload-pack=x",
    ] {
        assert_eq!(parse_revision(wrong), Err(RevisionError), "{wrong:?}");
    }
}

#[test]
fn a_path_stays_inside() {
    for fine in [
        "a",
        "a/b.yaml",
        ".github/x",
        "a/..b",
        "a b/c",
        "ä/ö.yaml",
        "a/-b",
        ".gitignore",
    ] {
        assert_eq!(check_path(fine), Ok(()), "{fine}");
    }
    for wrong in [
        "",
        "/etc/passwd",
        "-a",
        "a//b",
        "a/",
        "./a",
        "a/./b",
        "../a",
        "a/../b",
        "a/..",
        "..",
        ".",
        ".git/config",
        "a/.GIT/config",
        "a\\b",
        "..\\a",
        "a\0b",
        "a\nb",
        "a\u{1b}[2J",
        "C:\\a",
    ] {
        assert!(check_path(wrong).is_err(), "{wrong:?}");
    }
}

#[test]
fn an_address_is_shown_without_what_could_be_a_secret() {
    for (given, expected) in [
        ("https://example.com/r", "https://example.com/r"),
        ("file:///srv/r", "file:///srv/r"),
        (
            "https://u:CANARY@example.com/r",
            "https://***@example.com/r",
        ),
        ("https://CANARY@example.com/r", "https://***@example.com/r"),
        (
            "https://u:a/CANARY@example.com/r",
            "https://***@example.com/r",
        ),
        (
            "https://u:CANARY%40example.com/r",
            "https://***@example.com/r",
        ),
        ("https://u:CANARY/r", "https://***/r"),
        (
            "https://example.com/r?t=CANARY",
            "https://example.com/r?***",
        ),
        ("https://example.com/r#CANARY", "https://example.com/r?***"),
        ("https:/u:CANARY@example.com/r", "***@example.com/r"),
        ("ssh://git@example.com/r", "ssh://git@example.com/r"),
        ("ssh://git:CANARY@example.com/r", "ssh://***@example.com/r"),
        ("git@example.com:r", "git@example.com:r"),
        ("git:CANARY@example.com:r", "***@example.com:r"),
        ("u:CANARY@h://x", "***@h://x"),
        (
            "https://example.com/\u{1b}[31mr",
            "https://example.com/\u{fffd}[31mr",
        ),
    ] {
        assert_eq!(shown(given), expected, "{given:?}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_fail_or_change_its_mind(text in ".{0,80}") {
        if let Ok(address) = parse(&text, ALL) {
            prop_assert_eq!(parse(address.as_str(), ALL), Ok(address.clone()));
            prop_assert!(!address.as_str().starts_with('-'));
        }
        shown(&text);
        let _ = (parse_revision(&text), check_path(&text));
    }

    #[test]
    fn what_stands_before_an_at_sign_is_never_shown(
        scheme in "https://|http://|ssh://|git://|",
        user in "[a-z]{0,6}",
        path in "[a-z/]{0,9}",
    ) {
        let text = format!("{scheme}{user}:CANARY@example.com{path}");
        prop_assert!(!shown(&text).contains("CANARY"));
        if let Err(error) = parse(&text, ALL) {
            prop_assert!(!error.to_string().contains("CANARY"));
        }
    }

    #[test]
    fn what_reaches_a_remote_shell_has_nothing_for_it(text in "(ssh://|git@)[ -~]{0,40}") {
        if let Ok(Address { transport: Transport::Ssh { user, host, path, .. }, .. }) = parse(&text, ALL) {
            let fine = |text: &str, more: &str| {
                !text.starts_with('-') && text.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c))
            };
            prop_assert!(fine(&path, "-._~+,=/"));
            prop_assert!(fine(&host, "-._:"));
            prop_assert!(user.is_none_or(|user| fine(&user, "-._")));
        }
    }
}
