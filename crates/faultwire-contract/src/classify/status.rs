//! HTTP statuses in a text, where their place says that they are one.

use std::sync::LazyLock;

use regex::Regex;

/// `HTTP 404`, `status code 404`, `API error: 404`, `404 Not Found`, `Error: 404`, `response (404)`.
static IN_PLACE: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r#"(?xi-u)
        \bHTTP(?:S|/[\d.]+)?(?:\x20?(?:error|status|response))?(?:\x20code)?!?[\x20:=(\[]{1,3}(?:status(?:\x20code)?[\x20:=]{1,2})?["']?(?P<a>[45]\d\d)\b
      | \bstatus(?:[\x20_]?code)?["']?[\x20:=(\[]{1,3}(?:of\x20|was\x20|is\x20)?["']?(?P<b>[45]\d\d)\b
      | \b(?:api|server|client|http|upstream|gateway|request)\x20(?:error|failed|returned|response|responded)(?:\x20(?:with|code|status|from))*["']?[\x20:=(\[]{1,3}["']?(?P<c>[45]\d\d)\b
      | (?:^|[\s"'(\[:=>])(?P<d>
            400["']?[\x20:,-]{1,3}["']?bad\x20request | 401["']?[\x20:,-]{1,3}["']?unauthori[sz]ed | 402["']?[\x20:,-]{1,3}["']?payment\x20required | 403["']?[\x20:,-]{1,3}["']?(?:forbidden|rate\x20limit) | 404["']?[\x20:,-]{1,3}["']?(?:not\x20found|page\x20not)
          | 405["']?[\x20:,-]{1,3}["']?method\x20not | 406["']?[\x20:,-]{1,3}["']?not\x20acceptable | 408["']?[\x20:,-]{1,3}["']?request\x20time-?out | 409["']?[\x20:,-]{1,3}["']?conflict | 410["']?[\x20:,-]{1,3}["']?gone | 412["']?[\x20:,-]{1,3}["']?precondition
          | 413["']?[\x20:,-]{1,3}["']?(?:payload|request\x20entity|content)\x20too | 414["']?[\x20:,-]{1,3}["']?uri\x20too | 415["']?[\x20:,-]{1,3}["']?unsupported | 422["']?[\x20:,-]{1,3}["']?unprocessable | 423["']?[\x20:,-]{1,3}["']?locked | 424["']?[\x20:,-]{1,3}["']?failed | 428["']?[\x20:,-]{1,3}["']?precondition
          | 429["']?[\x20:,-]{1,3}["']?too\x20many | 500["']?[\x20:,-]{1,3}["']?internal | 501["']?[\x20:,-]{1,3}["']?not\x20implemented | 502["']?[\x20:,-]{1,3}["']?bad\x20gateway | 503["']?[\x20:,-]{1,3}["']?service | 504["']?[\x20:,-]{1,3}["']?gateway\x20time | 507["']?[\x20:,-]{1,3}["']?insufficient | [45]\d\d[\x20:,-]{1,3}request\x20failed
        )
      | \b(?:error(?:\x20code)?|code|failed|returned|responded|got|response|with|upstream|server|api)[\x20:=(\[]{1,3}["']?(?P<e>[45]\d\d)(?:\s*$|["']?[):,\]\n]|\.\s|\.$|["']?\x20-)
      | \]\[(?P<g>[45]\d\d)\] | (?:^|[\s"'(\[:=>])(?P<h>[45]\d\d)\x20(?:client|server)\x20error\b | \b[a-z]\w*(?:error|exception)\((?P<i>[45]\d\d)\s*, | (?:→|->|=>)\x20?(?P<j>[45]\d\d)\b
      | ^(?P<f>[45]\d\d)(?:$|:\x20|\n|\x20(?-i:[A-Z])[a-z]+\x20[a-z]+)
      | \b(?-i:GET|POST|PUT|PATCH|DELETE|HEAD)\x20[!-~]+\x20(?P<k>[45]\d\d)\b
    "#;
    match Regex::new(pattern) {
        Ok(regex) => regex,
        Err(e) => unreachable!("a pattern of this file does not compile: {e}"),
    }
});

/// The first status that stands in its place.
pub(super) fn in_text(text: &str) -> Option<i64> {
    // Few texts have three such digits at all.
    let bytes = text.as_bytes();
    let begins =
        |w: &[u8]| matches!(w[0], b'4' | b'5') && w[1].is_ascii_digit() && w[2].is_ascii_digit();
    if !bytes.windows(3).any(begins) {
        return None;
    }
    let found = IN_PLACE.captures(text)?;
    let digits = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"]
        .iter()
        .find_map(|name| found.name(name))?;
    digits.as_str().get(..3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::in_text;

    #[test]
    fn u1_a_status_counts_in_its_place_only() {
        for (text, status) in [
            ("HTTP 404", Some(404)),
            ("HTTP error! Status: 404", Some(404)),
            ("Request failed with status code 503", Some(503)),
            ("Client error '404 Not Found' for url _", Some(404)),
            ("Unexpected server response (404) while retrieving", Some(404)),
            ("Brave API error: 422 Unprocessable Entity", Some(422)),
            ("GitHub API error: 500", Some(500)),
            ("429: this month's credit is used up", Some(429)),
            ("[GET /dashboards/{uid}][404] getNotFound", Some(404)),
            ("401 Client Error: Unauthorized for url: _", Some(401)),
            ("NotFoundError(404, 'index_not_found_exception')", Some(404)),
            ("GET /x → 503, sent _", Some(503)),
            ("POST https://hooks.example.com/a 404 no_service", Some(404)),
            ("403 No valid crumb was included", Some(403)),
            ("Error: 503 jobs failed", None),
            ("Issue 429 not closed", None),
            ("View 429 not found", None),
            ("took 503 ms", None),
            ("port 5000", None),
        ] {
            assert_eq!(in_text(text), status, "{text}");
        }
    }
}
