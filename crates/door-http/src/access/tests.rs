use axum::http::Request;

use super::*;

fn access() -> Access {
    let hosts = HostNames::parse("telpher, *.svc.local").unwrap();
    let origins = Origins::parse("https://app.example.com").unwrap();
    Access::new(hosts, origins, None)
}

/// Returns the status of a request with these fields: 200 if it is admitted.
fn status(fields: &[(&str, &str)], is_open: bool) -> u16 {
    let mut request = Request::get("/v1/agents");
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    let (head, ()) = request.body(()).unwrap().into_parts();
    let judged = access().judge(&head, || is_open);
    judged.map_or_else(|problem| problem.status.as_u16(), |_| 200)
}

#[test]
fn open_node_answers_addresses_and_its_names_only() {
    for host in [
        "127.0.0.1",
        "127.0.0.1:7401",
        "[::1]:7401",
        "[::1]",
        "10.1.2.3",
        "localhost",
        "LocalHost:1",
        "telpher:7401",
        "Telpher",
        "a.svc.local",
        "a.b.svc.local:80",
    ] {
        assert_eq!(status(&[("host", host)], true), 200, "{host}");
    }
    for host in [
        "evil.example",
        "evil.example:7401",
        "svc.local",
        ".svc.local",
        "telpher.evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "127.1",
        "2130706433",
        "0x7f.1",
        "u@127.0.0.1",
        "127.0.0.1:x",
        "[::1",
        "[evil]",
        ":7401",
        "127.0.0.1:7401:1",
    ] {
        assert_eq!(status(&[("host", host)], true), 421, "{host}");
        assert_eq!(
            status(&[("host", host)], false),
            200,
            "{host}: tokens are required"
        );
    }
    assert_eq!(status(&[], true), 400);
    assert_eq!(status(&[("host", "")], true), 400);
    assert_eq!(
        status(&[("host", "localhost"), ("host", "evil.example")], true),
        400
    );
}

#[test]
fn host_in_the_request_target_is_checked_too() {
    let request = Request::get("http://evil.example/v1/agents").header("host", "127.0.0.1");
    let (head, ()) = request.body(()).unwrap().into_parts();
    let refused = access().judge(&head, || true).unwrap_err();
    assert_eq!(refused.status, StatusCode::MISDIRECTED_REQUEST);
}

#[test]
fn pages_of_other_origins_are_refused_with_tokens_or_without() {
    let host = ("host", "localhost:7401");
    for is_open in [true, false] {
        for (origin, expected) in [
            ("http://localhost:7401", 200),
            ("https://app.example.com", 200),
            ("http://app.example.com", 403),
            ("https://app.example.com:8443", 403),
            ("https://app.example.com.evil.example", 403),
            ("http://localhost:3000", 403),
            ("http://localhost", 403),
            ("http://127.0.0.1:7401", 403),
            ("https://evil.example", 403),
            ("null", 403),
            ("", 403),
        ] {
            assert_eq!(
                status(&[host, ("origin", origin)], is_open),
                expected,
                "{origin}"
            );
            let cross = [host, ("origin", origin), ("sec-fetch-site", "cross-site")];
            assert_eq!(status(&cross, is_open), expected, "{origin}");
        }
        for (site, expected) in [
            ("none", 200),
            ("same-origin", 200),
            ("same-site", 403),
            ("cross-site", 403),
            ("x", 403),
        ] {
            assert_eq!(
                status(&[host, ("sec-fetch-site", site)], is_open),
                expected,
                "{site}"
            );
        }
        let two = [
            ("origin", "http://localhost:7401"),
            ("origin", "https://evil.example"),
        ];
        assert_eq!(status(&[host, two[0], two[1]], is_open), 400);
    }
}

#[test]
fn refusals_name_the_whole_option() {
    let detail = |fields: [(&str, &str); 2]| {
        let request = fields.iter().fold(Request::get("/"), |it, (name, value)| {
            it.header(*name, *value)
        });
        let (head, ()) = request.body(()).unwrap().into_parts();
        access().judge(&head, || true).unwrap_err().detail
    };
    let origin = detail([("host", "localhost"), ("origin", "http://localhost:3000")]);
    let line = r#"`http.origins = "https://app.example.com,http://localhost:3000"`"#;
    assert!(origin.contains(line), "{origin}");
    let host = detail([("host", "node-1:7401"), ("accept", "*/*")]);
    assert!(
        host.contains(r#"`http.hosts = "telpher,*.svc.local,node-1"`"#),
        "{host}"
    );
    assert!(
        host.contains("`--http-hosts telpher,*.svc.local,node-1`"),
        "{host}"
    );
}

#[test]
fn foreign_page_may_open_console_in_tab_only() {
    let visit = |path: &str, mode: &str, destination: &str| {
        let request = Request::get(path)
            .header("host", "telpher")
            .header("sec-fetch-site", "cross-site")
            .header("sec-fetch-mode", mode)
            .header("sec-fetch-dest", destination);
        let (head, ()) = request.body(()).unwrap().into_parts();
        access().judge(&head, || true).is_ok()
    };
    assert!(visit("/ui", "navigate", "document"));
    assert!(visit("/ui/", "navigate", "document"));
    for (path, mode, destination) in [
        ("/ui/", "navigate", "iframe"),
        ("/ui/", "no-cors", "script"),
        ("/ui/app.js", "navigate", "document"),
        ("/uix", "navigate", "document"),
        ("/v1/agents", "navigate", "document"),
    ] {
        assert!(
            !visit(path, mode, destination),
            "{path} {mode} {destination}"
        );
    }
}
