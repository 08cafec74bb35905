use super::*;

fn headers(fields: &[(HeaderName, &str)]) -> HeaderMap {
    let fields = fields
        .iter()
        .map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap()));
    fields.collect()
}

fn plain(file: &File) -> String {
    let mut text = String::new();
    GzDecoder::new(file.gzip).read_to_string(&mut text).unwrap();
    text
}

#[test]
fn page_has_strict_policy_and_is_validated() {
    let response = serve("", &headers(&[(header::ACCEPT_ENCODING, "br, gzip")]));
    assert_eq!(response.status(), StatusCode::OK);
    let fields = response.headers();
    let policy = fields[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
    assert!(policy.starts_with("default-src 'none'"), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!(fields[header::CACHE_CONTROL], "no-cache");
    assert_eq!(fields[header::CONTENT_ENCODING], "gzip");
    assert_eq!(fields[header::CONTENT_TYPE], "text/html; charset=utf-8");
    let tag = fields[header::ETAG].to_str().unwrap().to_owned();
    let again = serve("", &headers(&[(header::IF_NONE_MATCH, &tag)]));
    assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
    assert!(
        again
            .headers()
            .contains_key(header::CONTENT_SECURITY_POLICY)
    );
}

#[test]
fn files_of_the_page_exist_and_are_immutable() {
    let page = plain(
        bundle::FILES
            .iter()
            .find(|file| file.name.is_empty())
            .unwrap(),
    );
    let mut names = Vec::new();
    for (attribute, end) in [("src=\"", '"'), ("href=\"", '"')] {
        for part in page.split(attribute).skip(1) {
            names.push(part.split(end).next().unwrap().to_owned());
        }
    }
    names.retain(|name| !name.starts_with("data:"));
    assert!(names.len() >= 2, "a script and a style sheet: {names:?}");
    for name in names {
        let response = serve(&name, &HeaderMap::new());
        assert_eq!(response.status(), StatusCode::OK, "{name}");
        let cached = response.headers()[header::CACHE_CONTROL].to_str().unwrap();
        assert!(cached.contains("immutable"), "{name}: {cached}");
        assert!(!response.headers().contains_key(header::CONTENT_ENCODING));
    }
}

#[test]
fn page_has_no_inline_script_or_style() {
    let page = plain(
        bundle::FILES
            .iter()
            .find(|file| file.name.is_empty())
            .unwrap(),
    );
    assert!(!page.contains("<style"), "{page}");
    assert!(!page.contains(" style="), "{page}");
    for script in page.split("<script").skip(1) {
        let (attributes, rest) = script.split_once('>').unwrap();
        assert!(attributes.contains("src="), "{page}");
        assert!(rest.starts_with("</script>"), "{page}");
    }
}

#[test]
fn bundle_is_smaller_than_its_limit() {
    let size: usize = bundle::FILES.iter().map(|file| file.gzip.len()).sum();
    assert!(size < 150_000, "{size} bytes");
}

#[test]
fn unknown_file_is_not_found() {
    for name in ["app.js", "index.html", "../Cargo.toml"] {
        assert_eq!(
            serve(name, &HeaderMap::new()).status(),
            StatusCode::NOT_FOUND,
            "{name}"
        );
    }
}

#[test]
fn compression_is_negotiated() {
    for (field, expected) in [
        ("gzip", true),
        ("br, gzip;q=0.5", true),
        ("*", true),
        ("br", false),
        ("gzip;q=0", false),
        ("identity", false),
    ] {
        let headers = headers(&[(header::ACCEPT_ENCODING, field)]);
        assert_eq!(accepts_gzip(&headers), expected, "{field}");
    }
}
