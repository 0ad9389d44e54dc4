//! Every mistake in a contract file has a message that says where, what, and what to do.

use faultwire_contract::Contract;

const FILE: &str = include_str!("../data/harbour.toml");

/// Each mistake: its name, a text of the file, and what somebody wrote instead.
const MISTAKES: &[(&str, &str, &str)] = &[
    ("no TOML", "[contract]", "[contract"),
    ("no head", "[contract]\nname = \"harbour\"", "[contracts]\nname = \"harbour\""),
    ("unknown table", "[alert.log]", "[alarm.log]"),
    ("unknown key in the head", "title = ", "titel = "),
    ("unknown key in a row", "outcome = \"not_sent\"", "outcom = \"not_sent\""),
    ("no name", "name = \"harbour\"\n", ""),
    ("malformed name", "name = \"harbour\"", "name = \"The Harbour\""),
    ("malformed version", "version = \"2.1.0\"\ntitle", "version = \"2.1\"\ntitle"),
    ("no fallback", "fallback = \"H-900\"\n", ""),
    ("fallback not in the list", "fallback = \"H-900\"", "fallback = \"H-909\""),
    ("unknown requirement", "requires = [\"release\"]", "requires = [\"review\"]"),
    ("no categories", "categories = [\"ship\", \"port\", \"sea\"]\n", ""),
    ("empty list", "profiles = [\"brief\", \"full\"]", "profiles = []"),
    (
        "profile twice",
        "profiles = [\"brief\", \"full\"]",
        "profiles = [\"brief\", \"full\", \"brief\"]",
    ),
    ("pattern does not compile", "code_pattern = '^H-\\d{3}$'", "code_pattern = '^H-(\\d{3}$'"),
    ("no surface", "[surface.mcp]", "[surface.mpc]"),
    ("no template", "template.brief = '''", "tempalte.brief = '''"),
    (
        "template is no JSON",
        "[\"failure\", \"$code\", {\"text\": \"$message\", \"again\": \"$retry.kind\"}]",
        "[\"failure\", $code]",
    ),
    (
        "template is no composite",
        "[\"failure\", \"$code\", {\"text\": \"$message\", \"again\": \"$retry.kind\"}]",
        "\"$code\"",
    ),
    (
        "template with an unknown slot",
        "\"text\": \"$message\", \"again\"",
        "\"text\": \"$mesage\", \"again\"",
    ),
    (
        "template with a slot nobody knows",
        "\"text\": \"$message\", \"again\"",
        "\"text\": \"$xyzzy\", \"again\"",
    ),
    ("template repeats a member", "\"long\": \"$message\"", "\"short\": \"$message\""),
    ("template without the code", "{\"number\": \"$code\", ", "{"),
    ("optional key of a slot", "\"short\": \"$title\"", "\"short?\": \"$title\""),
    ("retry kinds with one word", "backoff = \"occasionally\"", "backoff = \"later\""),
    ("default of another type", "tool = \"unknown\"", "tool = 5"),
    ("default of a derived fact", "tool = \"unknown\"", "tool = \"unknown\"\norigin = \"moon\""),
    ("empty list of statuses", "status = 413", "status = []"),
    ("optional slot in a list", "}, \"$details\"]", "}, \"$details?\"]"),
    ("template for no profile", "template.full = ", "template.fuller = "),
    ("retry kind without a word", "backoff = \"occasionally\"\n", ""),
    ("cap below base", "cap_ms = 5000", "cap_ms = 100"),
    ("default for an unknown slot", "tool = \"unknown\"", "tol = \"unknown\""),
    ("unknown message policy", "[text]\n", "[text]\nmessage = \"raw\"\n"),
    ("unknown kind to mask", "[text]\n", "[text]\nmasks = [\"path\"]\n"),
    ("bound out of range", "message_bytes = 200", "message_bytes = 2"),
    (
        "no alert levels",
        "[alert.horn]\npage = \"every\"\n[alert.lamp]\nmore_than = 2\nwithin_s = 60\n[alert.log]\npage = \"never\"\n",
        "",
    ),
    ("alert level that pages how", "page = \"every\"", "page = \"sometimes\""),
    ("alert level without a window", "within_s = 60\n", ""),
    ("alert level with two answers", "page = \"every\"", "page = \"every\"\nmore_than = 3"),
    ("missing condition", "timeout = \"H-300\"\n", ""),
    ("unknown condition", "cancelled = \"H-300\"", "cancelled = \"H-300\"\nexploded = \"H-300\""),
    ("condition with no such code", "unknown_tool = \"H-100\"", "unknown_tool = \"H-110\""),
    ("condition with a retired code", "timeout = \"H-300\"", "timeout = \"H-201\""),
    ("unknown aspect", "missing = \"H-102\"", "lost = \"H-102\""),
    ("aspects without any", "{ any = \"H-101\", missing = \"H-102\" }", "{ missing = \"H-102\" }"),
    ("no codes", "[[code]]", "[[kode]]"),
    ("duplicate code", "id = \"H-101\"", "id = \"H-100\""),
    ("malformed code", "id = \"H-301\"", "id = \"H301\""),
    ("code of strange characters", "id = \"H-301\"", "id = \"H 301\""),
    ("no id", "id = \"H-301\"\n", ""),
    ("unknown category", "category = \"ship\"", "category = \"shop\""),
    ("no retry class", "retry = \"backoff\"\nstatus = 504", "status = 504"),
    ("unknown retry class", "retry = \"backoff\"\nstatus = 504", "retry = \"maybe\"\nstatus = 504"),
    ("retry class twice", "retry = [\"after\", \"backoff\"]", "retry = [\"after\", \"after\"]"),
    ("retry class that cannot be read back", "\"again\": \"$retry.kind\", \"short\"", "\"short\""),
    ("retried after no delay", "after_ms = 3000\n", ""),
    ("delay on a code never retried", "status = 413", "status = 413\nafter_ms = 5"),
    ("no status", "status = 413\n", ""),
    ("status that is no 4xx or 5xx", "status = 413", "status = 200"),
    ("status that is no number", "status = 413", "status = \"413\""),
    (
        "unknown alert level",
        "alert = \"horn\"\nmessage = \"Unclear",
        "alert = \"siren\"\nmessage = \"Unclear",
    ),
    ("no message", "message = \"Unclear trouble\"\n", ""),
    ("empty message", "message = \"Unclear trouble\"", "message = \"\""),
    (
        "message that would be redacted",
        "message = \"Unclear trouble\"",
        "message = \"see /etc/hafen.conf\"",
    ),
    ("no meaning", "meaning = \"The cause is not known.\"\n", ""),
    ("no action", "action = \"Call the harbour master.\"\n", ""),
    ("malformed since", "since = \"1.0.0\"", "since = \"v1\""),
    ("unknown outcome", "outcome = \"not_sent\"", "outcome = \"lost\""),
    ("retired without a successor", ", successor = \"H-200\" }", " }"),
    ("successor not in the list", "successor = \"H-200\"", "successor = \"H-222\""),
    ("type missing where it is shown", "\"short\": \"$title\"", "\"short\": \"$type\""),
    (
        "rule whose pattern does not compile",
        "when = { text = '(?i)\\bfog\\b'",
        "when = { text = '(?i)\\bfog\\b['",
    ),
    ("rule that names no code", "code = \"H-200\"\n\n[[redact]]", "code = \"FOG\"\n\n[[redact]]"),
    (
        "rule that matches everything",
        "when = { text = '(?i)\\bfog\\b', shape = \"tool_error\" }",
        "when = {}",
    ),
    ("rule with an unknown shape", "shape = \"tool_error\"", "shape = \"round\""),
    ("rule without when", "when = { text = '(?i)\\bfog\\b', shape = \"tool_error\" }\n", ""),
    (
        "redaction whose pattern does not compile",
        "pattern = 'berth-[0-9]{4}'",
        "pattern = 'berth-[0-9{4}'",
    ),
    ("redaction of an unknown kind", "kind = \"credential\"", "kind = \"secret\""),
    ("redaction without keywords", "keywords = [\"berth-\"]\n", ""),
    (
        "release that adds an unknown code",
        "adds = [\"H-201\", \"H-301\"]",
        "adds = [\"H-201\", \"H-302\"]",
    ),
    ("release without a note", "note = \"The first codes.\"\n", ""),
    ("test whose fault cannot be read", "fault = '''{\"code\"", "fault = '''{code"),
    ("test of an unknown code", "fault = '''{\"code\":\"H-200\"", "fault = '''{\"code\":\"H-222\""),
    ("test that expects nothing", "\nmcp = '''[\"failure\",", "\nmpc = '''[\"failure\","),
    ("next with an unknown slot", "[[release]]", "[next]\ntimeout = \"Ask {who}.\"\n[[release]]"),
    (
        "next that cannot always be said",
        "[[release]]",
        "[next]\ntimeout = \"Wait {wait}.\"\n[[release]]",
    ),
    ("next of no condition", "[[release]]", "[next]\ntimeouts = \"Wait.\"\n[[release]]"),
    (
        "alert of no origin",
        "413\nalert = \"log\"",
        "413\nalert = { any = \"log\", moon = \"log\" }",
    ),
    ("tool failure of an unknown category", "port = \"governance\"", "ports = \"governance\""),
    ("tool failure of an unknown class", "port = \"governance\"", "port = \"goverment\""),
    ("tool failure without a category", "\nsea = \"reliability\"", ""),
    (
        "tool failure without classes",
        "[tool_failure.class]\nship = \"capability\"",
        "[tool_failure]\nmaybe = \"Look.\"",
    ),
    (
        "tool failure with an empty warning",
        "[tool_failure.class]",
        "[tool_failure]\nmaybe_executed = \"\"\n[tool_failure.class]",
    ),
    ("test of an unknown profile", "profile = \"full\"", "profile = \"ful\""),
];

#[test]
fn each_mistake_is_named_with_its_line_and_what_to_do() {
    let mut shown = String::new();
    for (name, from, to) in MISTAKES {
        assert!(FILE.contains(from), "{name}: {from}");
        // Where every row must have the key, all but the first are mended by it, too.
        let broken =
            if *name == "no codes" { FILE.replace(from, to) } else { FILE.replacen(from, to, 1) };
        let mistakes = Contract::load("harbour.toml", &broken).expect_err(name);
        let first = mistakes.list.iter().take(2);
        shown += &format!("# {name}\n");
        for m in first {
            shown +=
                &format!("harbour.toml:{}:{}: {}\n  help: {}\n", m.line, m.column, m.what, m.help);
        }
        assert!(mistakes.list.iter().all(|m| m.line >= 1 && !m.help.is_empty()), "{name}");
    }
    insta::assert_snapshot!("mistakes", shown);
    let mut messages: Vec<String> =
        shown.lines().filter(|l| l.starts_with("harbour.toml:")).map(str::to_owned).collect();
    messages.sort();
    messages.dedup();
    assert!(messages.len() >= 60, "{}", messages.len());
}

#[test]
fn all_mistakes_are_found_at_once_in_the_order_of_the_file() {
    let broken = FILE
        .replace("status = 413", "status = 99")
        .replace("alert = \"horn\"", "alert = \"siren\"")
        .replace("timeout = \"H-300\"\n", "");
    let mistakes = Contract::load("harbour.toml", &broken).unwrap_err();
    assert_eq!(mistakes.list.len(), 4);
    assert!(mistakes.list.is_sorted_by_key(|m| m.line));
}

#[test]
fn hostile_files_are_refused_and_nothing_worse() {
    let deep = format!("x = {}1{}", "[".repeat(5000), "]".repeat(5000));
    let long = format!("[contract]\nname = \"{}\"", "a".repeat(1_000_000));
    let bomb = format!("[contract]\ncode_pattern = '{}'", "(a{1000}){1000}");
    let files = [
        "",
        " ",
        "\u{feff}",
        "\0",
        "[",
        "[contract]",
        "[contract]\nname = 1",
        "contract = 5",
        "[[contract]]",
        "code = 3",
        "[conditions]\ntimeout = 5",
        "[[code]]\nid = [1]",
        "surface = []",
        "[alert]\nx = 1",
        "[[rule]]\nwhen = 3",
        &deep,
        &long,
        &bomb,
    ];
    for file in files {
        let head: String = file.chars().take(40).collect();
        let mistakes = Contract::load("x.toml", file).expect_err(&head);
        assert!(!mistakes.list.is_empty() && !mistakes.to_string().is_empty());
    }
}
