//! What a failing tool gives beside its text follows the envelope (U4).

use std::sync::Arc;

use faultwire_contract::{
    BUILTINS, CallContext, Caller, Contract, Fault, Profile, ResultOptions, Stamp, builtin,
    classify_call,
};
use serde_json::{Value, json};

/// The content of the answer to a failure with these blocks, without the envelope.
fn follows(contract: &Arc<Contract>, blocks: &[Value]) -> Vec<Value> {
    let text = json!({ "type": "text", "text": "No such page" });
    let content: Vec<&Value> = [&text].into_iter().chain(blocks).collect();
    let line = json!({ "jsonrpc": "2.0", "id": 1,
                       "result": { "isError": true, "content": content } });
    let line = line.to_string();
    let judged = classify_call(contract, line.as_bytes(), &CallContext::default());
    let failure = judged.failure().expect("it is a failure");
    let fault = Fault::new(contract, failure.report, &Stamp::default()).unwrap();
    let fault = fault.with_blocks(failure.blocks, &Caller::default());
    let result = fault.call_tool_result(Profile::default(), ResultOptions::default());
    let result: Value = serde_json::from_slice(&result).unwrap();
    assert_eq!(result["isError"], true);
    let envelope = fault.envelope(faultwire_contract::Surface::Mcp, Profile::default());
    let told = result["content"][0]["text"].as_str().unwrap();
    assert_eq!(told.as_bytes(), envelope, "the envelope comes first");
    result["content"].as_array().unwrap()[1..].to_vec()
}

fn image(data: &str) -> Value {
    json!({ "type": "image", "mimeType": "image/png", "data": data })
}

fn omitted(what: &str) -> Value {
    json!({ "type": "text", "text": format!("… {what} omitted …") })
}

#[test]
fn u4_other_blocks_follow_the_envelope_in_every_contract_that_allows_them() {
    let link = json!({ "type": "resource_link", "uri": "notes://today", "name": "today" });
    let note = json!({ "type": "resource", "resource": { "uri": "notes://1", "text": "read me" } });
    let blocks = [image("iVBORw0KGgo="), link, note];
    for known in &BUILTINS {
        let contract = known.contract();
        // C1, C6: nothing of a server reaches an envelope whose messages are always its own.
        let expected: &[Value] = if contract.text.canonical { &[] } else { &blocks };
        assert_eq!(follows(&contract, &blocks), expected, "{}", known.name);
    }
}

#[test]
fn u4_blocks_are_redacted() {
    let standard = builtin("standard").unwrap();
    let note = |text: &str| {
        json!({ "type": "resource", "resource": { "uri": "notes://1", "mimeType": "text/plain",
                                                  "text": text } })
    };
    assert_eq!(
        follows(&standard, &[note("db password=hunter2hunter2 at /srv/keys/db.pem")]),
        [note("db password=[redacted] at [redacted:path]")],
    );
    let link = json!({ "type": "resource_link", "name": "q",
                       "uri": "https://u:s3cr3tpassw0rd@example.org/q" });
    let shown = follows(&standard, &[link])[0].to_string();
    assert!(!shown.contains("s3cr3tpassw0rd"), "{shown}");
    // Bytes that may be a text cannot be judged, and bytes that are no base64 are no bytes.
    let blob = json!({ "type": "resource", "resource": {
        "uri": "notes://2", "mimeType": "application/json", "blob": "cGFzc3dvcmQ9aHVudGVyMg==" } });
    let svg = json!({ "type": "image", "mimeType": "image/svg+xml", "data": "PHN2Zy8+" });
    let shown = follows(&standard, &[blob.clone(), svg.clone(), image("password: hunter2")]);
    let expected = [
        omitted(&format!("a resource of {} bytes", blob.to_string().len())),
        omitted(&format!("an image of {} bytes", svg.to_string().len())),
        omitted(&format!("an image of {} bytes", image("password: hunter2").to_string().len())),
    ];
    assert_eq!(shown, expected);
    let sound = json!({ "type": "resource", "resource": {
        "uri": "notes://3", "mimeType": "audio/ogg", "blob": "T2dnUw==" } });
    assert_eq!(follows(&standard, std::slice::from_ref(&sound)), [sound]);
}

#[test]
fn u4_blocks_are_bounded() {
    let standard = builtin("standard").unwrap();
    let large = image(&"A".repeat(700 * 1024));
    let shown = follows(&standard, &[large.clone(), large.clone(), image("AAAA")]);
    let whole = large.to_string().len();
    assert_eq!(shown, [large, omitted(&format!("an image of {whole} bytes")), image("AAAA")]);
    let many: Vec<Value> = (0..40).map(|_| image("AAAA")).collect();
    let shown = follows(&standard, &many);
    assert_eq!(shown.len(), 17);
    assert_eq!(shown[16], omitted("24 more content blocks"));
    let text = "so it goes ".repeat(100_000);
    let long = json!({ "type": "resource", "resource": { "uri": "notes://1", "text": text } });
    assert!(follows(&standard, &[long])[0].to_string().len() < 16 * 1024);
}

/// The official clients refuse a whole result, with the envelope in it, if one block is not as the
/// protocol has it.
#[test]
fn u4_no_block_costs_the_client_the_envelope() {
    let standard = builtin("standard").unwrap();
    let mut deep = json!("bottom");
    for _ in 0..100 {
        deep = json!({ "inner": deep });
    }
    let resource = |inner: Value| json!({ "type": "resource", "resource": inner });
    let blocks = [
        json!(7),
        json!("text"),
        json!(null),
        json!({ "type": 7 }),
        json!({ "type": "text", "text": null }),
        json!({ "type": "chart", "points": [1, 2, 3] }),
        json!({ "type": "image", "mimeType": "image/png" }),
        json!({ "type": "image", "data": "AAAA" }),
        json!({ "type": "image", "mimeType": "image/png", "data": "AAAA", "annotations": 5 }),
        image("AAAAA"),
        image("AA=A"),
        image("AAA=="),
        image("AA-_"),
        resource(json!("notes://1")),
        resource(json!({ "uri": "notes://1" })),
        resource(json!({ "uri": "a:b", "text": deep })),
    ];
    let both = json!({ "type": "resource", "resource": {
        "uri": "a:b", "mimeType": "image/png", "blob": "AAAA", "data": "cGFzc3dvcmQ9aHVudGVyMg==" } });
    for block in blocks.iter().chain([&both, &json!({ "type": "resource_link", "uri": "a:b" })]) {
        let shown = follows(&standard, std::slice::from_ref(block));
        let [Value::Object(shown)] = &shown[..] else { panic!("{block}: {shown:?}") };
        assert_eq!(shown["type"], "text", "{block}");
        assert!(shown["text"].as_str().unwrap().ends_with(" omitted …"), "{block}: {shown:?}");
    }
    // Too deep to be built: it is counted, too.
    let nested = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    let line = format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{{"isError":true,"content":[{{"type":"text","text":"No"}},{{"type":"x","y":{nested}}}]}}}}"#
    );
    let judged = classify_call(&standard, line.as_bytes(), &CallContext::default());
    assert_eq!(judged.failure().unwrap().blocks.len(), 1);
}
