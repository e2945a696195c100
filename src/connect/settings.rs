//! Checks the settings of a cluster in the kubeconfig before the client library uses them. The check is necessary
//! because the client library panics on an address without a scheme, and on a token that is not valid in an HTTP
//! header.

use http::header::HeaderValue;
use kube::config::{AuthInfo, Kubeconfig};
use secrecy::{ExposeSecret, SecretString};

use crate::text;

/// A setting of a cluster or user in the kubeconfig that cannot be used. The messages contain no passwords and no
/// tokens.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSetting {
    /// The address of the server does not begin with http or https. Contains the address.
    #[error("the server {0:?} is not an address")]
    Server(String),
    /// The address of the proxy does not begin with http or https. Contains the address.
    #[error("the proxy {0:?} is not an address of an http or https proxy")]
    Proxy(String),
    /// The token contains a line break or another character that is not valid in an HTTP header.
    #[error("the token has a line break or another character that no header can have")]
    Token,
    /// The file that contains the token cannot be read.
    #[error("the token file {file}: {why}")]
    TokenFile {
        /// The path of the token file.
        file: String,
        /// The error of the operating system for the token file.
        why: String,
    },
    /// The name, the uid or a group of the user to impersonate contains a character that is not valid in an HTTP
    /// header.
    #[error(
        "the user to impersonate has a line break or another character that no header can have"
    )]
    Impersonated,
    /// The kubeconfig uses an authentication provider that kubectl no longer supports. Contains the name of the
    /// provider.
    #[error("the auth-provider {0} is not supported: kubectl has removed it")]
    Provider(String),
}

impl BadSetting {
    /// Returns the next step for the user.
    pub(super) fn hint(&self) -> String {
        match self {
            Self::Server(_) => {
                "write the server in the kubeconfig as https://HOST:PORT or http://HOST:PORT"
            }
            Self::Proxy(_) => {
                "write proxy-url in the kubeconfig, or HTTPS_PROXY, as http://HOST:PORT or https://HOST:PORT"
            }
            Self::Token => "write the token in the kubeconfig as one line",
            Self::TokenFile { .. } => "set tokenFile in the kubeconfig to the path of a file with the token",
            Self::Impersonated => "the value of --as must be a user name without line breaks",
            Self::Provider(_) => {
                "give the user of the kubeconfig a credential plugin under exec, such as gke-gcloud-auth-plugin or kubelogin"
            }
        }
        .to_owned()
    }
}

/// Formats the address of a server for messages, without the credentials in it.
pub(super) fn shown(address: &str) -> String {
    text::address(address, |authority| {
        let port = authority.rsplit_once(':').map(|(_, port)| port);
        authority.ends_with(']') || port.is_some_and(|port| port.parse::<u16>().is_ok())
    })
}

/// Returns the address of the server of a context for messages, without the credentials in it.
pub(super) fn server(kubeconfig: &Kubeconfig, context: &str) -> String {
    let context = kubeconfig.contexts.iter().find(|it| it.name == context);
    let cluster = context.and_then(|it| Some(&it.context.as_ref()?.cluster));
    let cluster = kubeconfig
        .clusters
        .iter()
        .find(|it| Some(&it.name) == cluster);
    let server = cluster.and_then(|it| it.cluster.as_ref()?.server.clone());
    shown(&server.unwrap_or_default())
}

/// Checks the settings of a cluster. Removes white space around the token, as kubectl does.
pub(super) fn check(config: &mut kube::Config) -> Result<(), BadSetting> {
    let is_web = |address: &http::Uri| {
        matches!(address.scheme_str(), Some("http" | "https")) && address.host().is_some()
    };
    if !is_web(&config.cluster_url) {
        return Err(BadSetting::Server(shown(&config.cluster_url.to_string())));
    }
    if let Some(proxy) = config.proxy_url.as_ref().filter(|proxy| !is_web(proxy)) {
        return Err(BadSetting::Proxy(shown(&proxy.to_string())));
    }
    check_user(&mut config.auth_info)
}

fn check_user(user: &mut AuthInfo) -> Result<(), BadSetting> {
    if let Some(provider) = user.auth_provider.take() {
        let token = provider.config.get("id-token");
        // Of the authentication providers, kubectl still supports only oidc.
        let Some(token) = token.filter(|_| provider.name == "oidc") else {
            return Err(BadSetting::Provider(provider.name));
        };
        (user.username, user.password) = (None, None);
        user.token = Some(SecretString::from(token.clone()));
    }
    if let Some(token) = &user.token {
        user.token = Some(one_line(token.expose_secret())?);
    } else if let Some(file) = &user.token_file {
        let read = std::fs::read_to_string(file);
        let token = read.map_err(|error| BadSetting::TokenFile {
            file: file.clone(),
            why: error.to_string(),
        })?;
        let plain = one_line(&token)?;
        // The client library would read the token file again when it changes, but would keep a line break at its end.
        // So a token with white space around it is read only once, here.
        if plain.expose_secret() != token {
            user.token = Some(plain);
        }
    }
    let named = user.impersonate.iter().chain(&user.impersonate_uid);
    let mut named = named.chain(user.impersonate_groups.iter().flatten());
    match named.all(|name| HeaderValue::from_str(name).is_ok()) {
        true => Ok(()),
        false => Err(BadSetting::Impersonated),
    }
}

/// Removes the white space around a token. Fails if the token is not valid in an HTTP header.
fn one_line(token: &str) -> Result<SecretString, BadSetting> {
    let token = token.trim();
    match HeaderValue::from_str(token) {
        Ok(_) => Ok(SecretString::from(token.to_owned())),
        Err(_) => Err(BadSetting::Token),
    }
}

/// Returns whether the output of a credential plugin contains a token that is not valid in an HTTP header.
pub(super) fn has_bad_token(output: &str) -> bool {
    let read = bounded_yaml::documents("the output", output).unwrap_or_default();
    let mut tokens = read
        .iter()
        .filter_map(|it| it.value.pointer("/status/token")?.as_str());
    tokens.any(|token| HeaderValue::from_str(token).is_err())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(server: &str) -> kube::Config {
        kube::Config::new(server.parse().unwrap())
    }

    #[test]
    fn an_address_without_a_scheme_is_refused_by_its_value() {
        for (server, named) in [
            ("localhost:6443", Some("localhost:6443")),
            ("127.0.0.1:6443", Some("127.0.0.1:6443")),
            ("foo", Some("foo")),
            ("ftp://foo:1", Some("ftp://foo:1/")),
            ("/path", Some("/path")),
            ("http://foo", None),
            ("https://user:pw@foo:1/path", None),
        ] {
            let expected = named.map(|named| BadSetting::Server(named.to_owned()));
            let found = check(&mut config(server)).err();
            assert_eq!(found, expected, "{server}");
        }
        let mut proxied = config("http://foo");
        proxied.proxy_url = Some("socks5://ana:secret@foo:1".parse().unwrap());
        let error = check(&mut proxied).unwrap_err().to_string();
        assert!(
            error.contains("foo:1") && !error.contains("secret"),
            "{error}"
        );
    }

    #[test]
    fn an_address_is_shown_without_its_password() {
        for (address, expected) in [
            ("http://user:pw@127.0.0.1:1/", "http://***@127.0.0.1:1/"),
            ("https://[::1]:6443", "https://[::1]:6443"),
            ("https://[::1]", "https://[::1]"),
            ("https://user:pw", "https://***/"),
            (
                "https://foo:6443/path?token=pw",
                "https://foo:6443/path?***",
            ),
        ] {
            assert_eq!(shown(address), expected);
        }
    }

    #[tokio::test]
    async fn a_token_is_trimmed_or_refused_without_being_printed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        for (token, expected) in [
            ("secret", Some("secret")),
            (" secret\n", Some("secret")),
            ("sec\nret", None),
            ("sec\u{7f}ret", None),
            ("sec\u{0}ret", None),
        ] {
            let mut inline = config("http://foo");
            inline.auth_info.token = Some(SecretString::from(token.to_owned()));
            std::fs::write(&file, token).unwrap();
            let mut in_file = config("http://foo");
            in_file.auth_info.token_file = Some(file.display().to_string());
            for mut config in [inline, in_file] {
                let checked = check(&mut config);
                let sent = config.auth_info.token.as_ref();
                match expected {
                    Some(expected) => {
                        checked.unwrap();
                        let sent = sent.map_or(token, |token| token.expose_secret());
                        assert_eq!(sent, expected);
                        kube::Client::try_from(config).unwrap();
                    }
                    None => {
                        let error = checked.unwrap_err();
                        assert_eq!(error, BadSetting::Token);
                        assert!(!format!("{error} {error:?}").contains("sec"), "{error}");
                    }
                }
            }
        }
        let mut absent = config("http://foo");
        absent.auth_info.token_file = Some("/nowhere/token".to_owned());
        let error = check(&mut absent).unwrap_err().to_string();
        assert!(error.contains("/nowhere/token"), "{error}");
    }

    #[test]
    fn only_the_provider_that_kubectl_has_is_used() {
        let provided = |name: &str, settings: serde_json::Value| {
            let mut config = config("http://foo");
            let provider = serde_json::json!({"name": name, "config": settings});
            config.auth_info.auth_provider = serde_json::from_value(provider).unwrap();
            let checked = check(&mut config);
            (checked, config.auth_info)
        };
        let command = serde_json::json!({"cmd-path": "/bin/sleep", "cmd-args": "40"});
        let (checked, _) = provided("gcp", command);
        let error = checked.unwrap_err();
        assert_eq!(error, BadSetting::Provider("gcp".to_owned()));
        assert!(error.hint().contains("exec"), "{}", error.hint());
        let (checked, user) = provided("oidc", serde_json::json!({"id-token": "a.b.c\n"}));
        checked.unwrap();
        assert!(user.auth_provider.is_none());
        assert_eq!(user.token.unwrap().expose_secret(), "a.b.c");
        let (checked, _) = provided("oidc", serde_json::json!({}));
        assert!(checked.is_err());
    }

    #[test]
    fn nobody_is_impersonated_by_a_name_with_a_line_break() {
        let mut config = config("http://foo");
        for (name, is_good) in [("ana", true), ("a\nb", false), ("ana: \u{1b}", false)] {
            config.auth_info.impersonate = Some(name.to_owned());
            assert_eq!(check(&mut config).is_ok(), is_good, "{name:?}");
        }
    }

    #[test]
    fn a_token_of_a_plugin_must_be_one_line() {
        for (output, is_bad) in [
            (r#"{"status": {"token": "abc"}}"#, false),
            (r#"{"status": {"token": "a\nb"}}"#, true),
            ("status:\n  token: \"a\\n\"\n", true),
            ("status: {}", false),
            ("", false),
            ("{", false),
        ] {
            assert_eq!(has_bad_token(output), is_bad, "{output}");
        }
    }
}
