//! Values that are secret only because of their position.

use super::check;

#[test]
fn plain_words_go_where_they_fill_a_line() {
    for (text, expected) in [
        ("password: letmein", "password: <SECRET>"),
        ("password=letmein", "password=<SECRET>"),
        ("PASSWORD = letmein", "PASSWORD = <SECRET>"),
        ("a: 1\n  secret: letmein\nb: 2", "a: 1\n  secret: <SECRET>\nb: 2"),
        ("api_key = abcdefghijklmnop", "api_key = <SECRET>"),
        ("client-secret=abc", "client-secret=<SECRET>"),
        ("auth_token=abc", "auth_token=<SECRET>"),
        ("pass=hunter2", "pass=<SECRET>"),
        ("PASS=hunter2", "PASS=<SECRET>"),
        ("pass: hunter2", "pass: <SECRET>"),
        ("Set password = hunter2 please", "Set password = <SECRET> please"),
        ("host=x password=letmein port=1", "host=x password=<SECRET> port=1"),
        (
            "aws_session_token = FwoGZXIvYXdzEBYaDExample//////////wEa",
            "aws_session_token = <SECRET>",
        ),
    ] {
        check(text, expected);
    }
}

#[test]
fn numbers_and_lists_under_a_key_go() {
    for (text, expected) in [
        ("{\"token\":123456789}", "{\"token\":\"<SECRET>\"}"),
        ("{\"tokens\":123456789}", "{\"tokens\":123456789}"),
        ("{\"max_tokens\":123456789}", "{\"max_tokens\":123456789}"),
        ("{\"token_count\":123456789}", "{\"token_count\":123456789}"),
        ("{\"token\":1234567}", "{\"token\":1234567}"),
        ("{\"token\":[\"aaaabbbbcccc1\"]}", "{\"token\":[\"<SECRET>\"]}"),
        (
            "{\"token\": [\n \"aaaabbbbcccc1\", \"bbbbccccdddd2\"\n]}",
            "{\"token\": [\n \"<SECRET>\", \"<SECRET>\"\n]}",
        ),
        (
            "{\"headers\":{\"authorization\":[\"Bearer hunter2abcdef\"]}}",
            "{\"headers\":{\"authorization\":[\"Bearer <SECRET>\"]}}",
        ),
        ("{\\\"token\\\":[\\\"aaaabbbbcccc1\\\"]}", "{\\\"token\\\":[\\\"<SECRET>\\\"]}"),
        ("'password' => ['required', 'confirmed']", "'password' => ['required', 'confirmed']"),
    ] {
        check(text, expected);
    }
}

#[test]
fn logins_of_commands_go() {
    for (text, expected) in [
        ("ENV API_TOKEN hunter2abc", "ENV API_TOKEN <SECRET>"),
        ("ENV API_TOKEN $TOKEN", "ENV API_TOKEN $TOKEN"),
        ("setenv TOKEN hunter2abc", "setenv TOKEN <SECRET>"),
        ("machine x login y password hunter2", "machine x login y password <SECRET>"),
        ("mysql -u root -phunter2 db", "mysql -u root -p<SECRET> db"),
        ("mysqldump -p'hunter2' db", "mysqldump -p'<SECRET>' db"),
        ("mysql -p db", "mysql -p db"),
        ("mkdir -phunter2", "mkdir -phunter2"),
        (
            "Authorization: Digest username=\"a\", nc=1, response=\"hunter2abc\"",
            "Authorization: Digest username=\"<SECRET>\", nc=<SECRET>, response=\"<SECRET>\"",
        ),
        (
            "\"Authorization\": \"Digest username=\\\"a\\\", response=\\\"hunter2abc\\\"\",",
            "\"Authorization\": \"Digest username=\\\"<SECRET>\\\", response=\\\"<SECRET>\\\"\",",
        ),
        ("https://a1b2c3d4@github.com/x", "https://<SECRET>@github.com/x"),
        ("https://user@host/x", "https://user@host/x"),
        ("login with password authentication", "login with password authentication"),
    ] {
        check(text, expected);
    }
}

#[test]
fn values_go_whose_name_stands_beside_them() {
    for (text, expected) in [
        (
            "{\"name\":\"DB_PASSWORD\",\"value\":\"hunter2\"}",
            "{\"name\":\"DB_PASSWORD\",\"value\":\"<SECRET>\"}",
        ),
        (
            "{\\\"name\\\": \\\"DB_PASSWORD\\\",\\n \\\"value\\\": \\\"letmein\\\"}",
            "{\\\"name\\\": \\\"DB_PASSWORD\\\",\\n \\\"value\\\": \\\"<SECRET>\\\"}",
        ),
        ("- name: DB_PASSWORD\n  value: hunter2\n", "- name: DB_PASSWORD\n  value: <SECRET>\n"),
        ("- name: DB_PASSWORD\n  value: \"letmein\"", "- name: DB_PASSWORD\n  value: \"<SECRET>\""),
        ("<add key=\"password\" value=\"hunter2\"/>", "<add key=\"password\" value=\"<SECRET>\"/>"),
        (
            "- name: DB_PASSWORD\n  valueFrom: x1y2z3w4",
            "- name: DB_PASSWORD\n  valueFrom: x1y2z3w4",
        ),
        ("- name: max_tokens\n  value: 4096", "- name: max_tokens\n  value: 4096"),
    ] {
        check(text, expected);
    }
}

#[test]
fn key_blocks_go_behind_line_numbers_and_when_short() {
    let open = "-----BEGIN RSA PRIVATE KEY-----";
    let body = "MIIEpAIBAAKCAQEA0Z3VS5JJcds3xfn";
    check(
        &format!("   1\u{2192}{open}\n   2\u{2192}{body}\n   3\u{2192}{body}"),
        "   1\u{2192}<SECRET>",
    );
    check(&format!("{{\"k\":\"1\\t{open}\\n 2\\t{body}\\n\"}}"), "{\"k\":\"1\\t<SECRET>\"}");
    check(
        &format!(
            "   1\u{2192}{open}\n   2\u{2192}{body}\n   3\u{2192}-----END RSA PRIVATE KEY-----\nb"
        ),
        "   1\u{2192}<SECRET>\nb",
    );
    check("-----BEGIN OPENSSH PRIVATE KEY-----\nhunter2unclosed", "<SECRET>");
    check(&format!("{open}\nfollowed by a key"), &format!("{open}\nfollowed by a key"));
}

#[test]
fn logins_in_headers_and_addresses_go() {
    for (text, expected) in [
        ("Authorization: Bearer abc", "Authorization: Bearer <SECRET>"),
        ("curl -H 'Authorization: token abc123' x", "curl -H 'Authorization: token <SECRET>' x"),
        ("\"Authorization\": \"Basic dXNlcjpwYXNz\",", "\"Authorization\": \"Basic <SECRET>\","),
        (
            "{\\\"authorization\\\":\\\"Bearer a.b\\\"}",
            "{\\\"authorization\\\":\\\"Bearer <SECRET>\\\"}",
        ),
        ("Authorization: Custom 0a1b2c3d4e", "Authorization: Custom <SECRET>"),
        ("Authorization: 0a1b2c3d4e5f", "Authorization: <SECRET>"),
        ("sent Bearer 0a1b2c3d4e5f.", "sent Bearer <SECRET>."),
        ("Cookie: sid=0a1b2c; theme=dark", "Cookie: sid=<SECRET>; theme=<SECRET>"),
        ("Set-Cookie: sid=0a1b2c; Path=/", "Set-Cookie: sid=<SECRET>; Path=/"),
        ("https://user:pa:ss@host/x", "https://user:<SECRET>@host/x"),
        ("redis://:pass@host:6379/0", "redis://:<SECRET>@host:6379/0"),
        ("mongodb+srv://u:p@h", "mongodb+srv://u:<SECRET>@h"),
        ("curl -u ann:pw https://x", "curl -u ann:<SECRET> https://x"),
        (
            "https://hooks.slack.com/services/T0000/B0000/abcdefghij",
            "https://hooks.slack.com/services/<SECRET>",
        ),
    ] {
        check(text, expected);
    }
}

#[test]
fn what_is_told_in_a_sentence_goes() {
    for (text, expected) in [
        ("Use Kestrel!88x as the root password.", "Use <SECRET> as the root password."),
        (
            "we changed the password from the old one to Tern?4417 today",
            "we changed the password from the old one to <SECRET> today",
        ),
        (
            "Das Kennwort für den Zugang lautet „Zaun#4471“.",
            "Das Kennwort für den Zugang lautet „<SECRET>“.",
        ),
        ("mot de passe du compte : « Roc#RQQ!u1 »", "mot de passe du compte : « <SECRET> »"),
        ("La clave del servidor nuevo: nq#c#bYU3Z", "La clave del servidor nuevo: <SECRET>"),
        ("Пароль от стенда — Limon?1950, логин root.", "Пароль от стенда — <SECRET>, логин root."),
        ("パスワードは Akagi$7502 です。", "パスワードは <SECRET> です。"),
        ("数据库密码是Gang#2893，请不要提交。", "数据库密码是<SECRET>，请不要提交。"),
        (
            "my API token, for the config: Ab12Cd34Ef56Gh78Ij90Kl12",
            "my API token, for the config: <SECRET>",
        ),
        (
            "requests.get(url, auth=(\"bob\", \"tern and roc\"))",
            "requests.get(url, auth=(\"bob\", \"<SECRET>\"))",
        ),
        ("new NetworkCredential('svc', 'E-_dgExI1')", "new NetworkCredential('svc', '<SECRET>')"),
    ] {
        check(text, expected);
    }
}

#[test]
fn sentences_about_passwords_stay() {
    for text in [
        "the password reset broke in annalist#123",
        "password hashing takes argon2id with 19MiB, see docs/auth.md#L12",
        "the token in v1.2.3 is of commit 3f786850e387550fdab836ed7e6dc881de23001b",
        "the password field width%20wide of page?x=1",
        "das Passwort ist jetzt in der Datei config2.yaml#auth",
        "DB_PASSWORD=${DB_PASSWORD:?missing}",
        "API_KEY=your-api-key-here",
        "auth=(user, password)",
        "the password check uses $HOME1abc and ${X}",
    ] {
        check(text, text);
    }
}
