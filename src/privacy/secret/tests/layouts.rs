//! Secrets in other layouts: commands over several lines or in lists, divided words, sentences; and
//! what looks like them.

use super::{check, masked};

#[track_caller]
fn check_stays(texts: &[&str]) {
    texts.iter().for_each(|text| check(text, text));
}

#[test]
fn commands_go_on_over_lines_and_in_lists() {
    for (text, expected) in [
        (
            "curl -s \\\n  -u bob:hunter2 \\\n  https://h",
            "curl -s \\\n  -u bob:<SECRET> \\\n  https://h",
        ),
        ("curl -u ^\r\n  bob:hunter2", "curl -u ^\r\n  bob:<SECRET>"),
        ("redis-cli `\n  -a hunter2 ping", "redis-cli `\n  -a <SECRET> ping"),
        (r#"{"run":"curl -u \\\n bob:hunter2"}"#, r#"{"run":"curl -u \\\n bob:<SECRET>"}"#),
        (r#"["curl", "-u", "bob:hunter2"]"#, r#"["curl", "-u", "bob:<SECRET>"]"#),
        (r#"run(['mysql', '-uroot', '-phunter2'])"#, r#"run(['mysql', '-uroot', '-p<SECRET>'])"#),
        (
            r#"{"a":"[\"sshpass\",\"-p\",\"hunter2\"]"}"#,
            r#"{"a":"[\"sshpass\",\"-p\",\"<SECRET>\"]"}"#,
        ),
        (r#"new("curl").arg("-u").arg("b:hunter2")"#, r#"new("curl").arg("-u").arg("b:<SECRET>")"#),
        (
            "command: [\"mysql\"]\nargs: [\"-u\", \"root\", \"-phunter2\"]",
            "command: [\"mysql\"]\nargs: [\"-u\", \"root\", \"-p<SECRET>\"]",
        ),
        (
            "image: curl:8\nargs:\n  - --user\n  - 'bob:hunter2'\n",
            "image: curl:8\nargs:\n  - --user\n  - 'bob:<SECRET>'\n",
        ),
        ("args:\n  - --password\n  - hunter2", "args:\n  - --password\n  - <SECRET>"),
    ] {
        check(text, expected);
    }
    check_stays(&[
        "[\"curl\", \"wget\", \"-u\"]",
        "[\"curl\", \"-u\", \"$USER:$PASS\"]",
        "[\"username\", \"password\", \"-x\"]",
        "security:\n  - api_key: []",
        "curl -u \\\n  $LOGIN \\\n  https://h",
        "[\"mysql\", \"-p\", \"app\"]",
        "- --password-file\n- /run/secrets/db",
        "[\"wpa_supplicant\", \"wpa_passphrase\", \"iw\"]",
    ]);
}

#[test]
fn words_that_colours_or_invisible_letters_divide_are_read_whole() {
    check("pass\u{200b}word: hunter2xy", "pass\u{200b}word: <SECRET>");
    check("pass\u{2060}wo\u{200d}rd=hunter2xy", "pass\u{2060}wo\u{200d}rd=<SECRET>");
    let token = "Ab12Cd34Ef56Gh78Ij90Kl12Mn34Op56Qr78";
    check(&format!("t \x1b[33mghp_\x1b[0m{token} x"), "t \x1b[33m<SECRET> x");
    check(
        "a\u{200b}b caf\u{e9}\u{200d}s \x1b[1mx\x1b[0my",
        "a\u{200b}b caf\u{e9}\u{200d}s \x1b[1mx\x1b[0my",
    );
}

#[test]
fn passwords_go_beside_their_user() {
    for text in [
        "user bob, pass: hunter22",
        "login: bob / pass: hunter22",
        "user: bob | pass: hunter22 | x",
        "the login is bob, password: hunter2",
        "Use password: hunter2 for the demo",
        "The staging login is admin with hunt3r-Two, please",
        "my login is root with Hunt3r-Two.",
        "Benutzer: bob; Passwort: hunter2",
    ] {
        let clean = masked(text);
        assert!(clean.contains("<SECRET>") && !clean.contains("hunt"), "{clean}");
    }
    check_stays(&[
        "user bob, pass: yes",
        "(user: user2, password: password2)",
        "{ password: hash2, salt: salt2 }",
        "the login is possible with Chrome120",
        "login is handled with OAuth2Client",
        "tests pass: parse2 and lex2",
        "(password: sha256, rounds: 10)",
        "Use password: required for the demo",
    ]);
}

#[test]
fn passwords_go_that_replace_others() {
    for (text, expected) in [
        ("the password was changed to wiki2025x", "the password was changed to <SECRET>"),
        ("I changed the password to wiki2025x.", "I changed the password to <SECRET>."),
        ("das Kennwort auf Zw3bel.Kuchen ge\u{e4}ndert", "das Kennwort auf <SECRET> ge\u{e4}ndert"),
        (
            "A password is generated for root@localhost: uE7jk>mQz2wL",
            "A password is generated for root@localhost: <SECRET>",
        ),
        ("X-Functions-Key: abcdefgh1234", "X-Functions-Key: <SECRET>"),
    ] {
        check(text, expected);
    }
    check_stays(&[
        "I changed the password hasher to bcrypt2024",
        "the password moved to vault2024 last week",
        "we changed the password to use argon2id",
        "the password check is generated for: users",
        "pub const ACTOR_KEY: _ty_30 = _ty_30::KEY;",
        "X-Cache-Key: abcdefgh1234",
    ]);
}

#[test]
fn members_of_any_name_go_by_what_they_are() {
    for (text, expected) in [
        (
            r#"{"key":"SMTP_PASS","type":"SECURE","val":"hunter2"}"#,
            r#"{"key":"SMTP_PASS","type":"SECURE","val":"<SECRET>"}"#,
        ),
        (r#"{"pin":"739104","x":1}"#, r#"{"pin":"<SECRET>","x":1}"#),
        (r#"{"otp_seed":"JBSWY3DPEHPK3PXP"}"#, r#"{"otp_seed":"<SECRET>"}"#),
        ("password: !secret_inline hunter2", "password: !secret_inline <SECRET>"),
        ("x --password-command 'echo hunter2' y", "x --password-command 'echo <SECRET>' y"),
        ("x --password-file=<(echo hunter2) y", "x --password-file=<(echo <SECRET>) y"),
        (
            "k = H(b\"t7Zq-lmP2-x9Wv\"); // signing secret",
            "k = H(b\"<SECRET>\"); // signing secret",
        ),
        (
            "> AUTH LOGIN\n< 334 UGFzc3dvcmQ6\n> aHVudGVyMg==",
            "> AUTH LOGIN\n< 334 UGFzc3dvcmQ6\n> <SECRET>",
        ),
    ] {
        check(text, expected);
    }
    check_stays(&[
        r#"{"pin":"13","mode":"out"}"#,
        r#"{"pin":"GPIO17"}"#,
        "pin = 1234",
        r#"{"random_seed":"a1b2c3d4e5"}"#,
        "password: !secret wifi_password",
        "--password-file=<(get-secret db)",
        r#"{"key":"name","type":"string","val":"a1b2c3"}"#,
        "x = \"t7Zq-lmP2-x9Wv\"; // not a secret",
        "x = \"the first name\"; // token",
    ]);
}

#[test]
fn translations_of_labels_stay() {
    check_stays(&[
        r#"{"form.passwordHint": "Passwort zu kurz", "form.apiToken": "Neues Token anlegen"}"#,
        r#"{"form.password": "パスワード", "form.newPassword": "Ny adgangskode"}"#,
    ]);
    for secret in ["marsh tulip 77", "marshtulip", "seven gulls over harbour"] {
        let text = |it: &str| format!(r#"{{"form.password": "{it}"}}"#);
        check(&text(secret), &text("<SECRET>"));
    }
}

#[test]
fn keys_go_that_a_sentence_gives() {
    for text in [
        "Use this key for the API: 8hk2-pQ9z-LmX7-wV3t.",
        "The bearer we use in tests is tk_4hk8LmPx2WvRt9Yu.",
        "wifi is GuestNet and the key there is plum-hkum-204-tiger",
        "code wifi: cerise-91-hkROUTE",
        "Der API-Schl\u{fc}ssel (q9hk2LmPz8Wv4t) l\u{e4}uft ab.",
        "La cl\u{e9} d'API c'est 4hkz8LmPx2WvRt9.",
        "Recovery codes: 8hk2-29ql, 7hkm-41pw",
        "Backup codes:\n- 8hk2-29ql\n- 71hk-41pw\n",
    ] {
        let clean = masked(text);
        assert!(clean.contains("<SECRET>") && !clean.contains("hk"), "{clean}");
    }
    check_stays(&[
        "Recovery codes: 10 for each user",
        "backup codes are shown once",
        "wifi driver: iwlwifi-8265 and its key file",
        "the wifi code is in net80211.c",
        "this key: tenant_id2",
        "the key for the cache is UserProfileV2",
    ]);
}

#[test]
fn the_rest_of_a_wrapped_key_goes() {
    for (text, expected) in [
        (
            "API_KEY=Xk29fLqP0vRt7WmZ3bYc\n  Pq81mNbV5cXz7LkJ2hGf\n\nas one line",
            "API_KEY=<SECRET>\n  <SECRET>\n\nas one line",
        ),
        (
            "curl -H \"Authorization: Bearer Xk29fLqP0vRt7WmZ3bYc\\\nPq81mNbV5c\" \\\n  x",
            "curl -H \"Authorization: Bearer <SECRET>\\\n<SECRET>\" \\\n  x",
        ),
        (
            "KEY = (\n  \"gsk_Xk29fLqP0vRt7WmZ3bYcXk\"\n  \"Pq81mNbV5cXz\"\n)",
            "KEY = (\n  \"<SECRET>\"\n  \"<SECRET>\"\n)",
        ),
        ("token = ('Xk29fLqP0vRt7WmZ3bYc' +\n 'Pq81mNb')", "token = ('<SECRET>' +\n '<SECRET>')"),
    ] {
        check(text, expected);
    }
    check_stays(&["see gsk_Xk29fLqP0v\nand more", "export TOKEN=$TOKEN\nXk29fLqP0vRt7WmZ3bYc"]);
    for rest in
        ["build-2024-05-release", "PATH=/usr/bin", "3f786850e387550fdab836ed7e6dc881de23001b"]
    {
        let text = format!("API_KEY=Xk29fLqP0vRt7WmZ3bYc\n{rest}\n");
        check(&text, &format!("API_KEY=<SECRET>\n{rest}\n"));
    }
}

#[test]
fn armoured_keys_of_any_title_go() {
    let body = "8f1b0c2d3e4f5a6b7c8d9e0f1a2b3c4d\n3e4f5a6b7c8d9e0f1a2b3c4d8f1b0c2d";
    for title in ["OpenVPN Static key V1", "OpenVPN tls-crypt-v2 client key", "USER NKEY SEED"] {
        let text = format!("a\n-----BEGIN {title}-----\n{body}\n-----END {title}-----\nb");
        check(&text, "a\n<SECRET>\nb");
    }
    let title = "SSH2 ENCRYPTED PRIVATE KEY";
    check(&format!("---- BEGIN {title} ----\n{body}\n---- END {title} ----\nb"), "<SECRET>\nb");
    for title in
        ["CERTIFICATE", "PGP PUBLIC KEY BLOCK", "SSH HOST KEY FINGERPRINTS", "SSH SIGNATURE"]
    {
        check_stays(&[&format!("-----BEGIN {title}-----\n{body}\n-----END {title}-----\n")]);
    }
}

#[test]
fn logins_go_in_maps_of_mail_servers() {
    for (text, expected) in [
        ("[smtp.example.org]:587    shop:Tulpe7-x", "[smtp.example.org]:587    shop:<SECRET>"),
        (
            "# sasl_passwd\nmail.example.org kai:letmein\n@example.net ops:Tulpe7-x\n",
            "# sasl_passwd\nmail.example.org kai:<SECRET>\n@example.net ops:<SECRET>\n",
        ),
        (
            "echo '[smtp.example.org]:465 kai:Tulpe7' > map",
            "echo '[smtp.example.org]:465 kai:<SECRET>' > map",
        ),
    ] {
        check(text, expected);
    }
    check_stays(&[
        "relayhost = [smtp.example.org]:587",
        "listens on :587 and :465",
        "smtp.example.org:587 refused the connection: timeout",
        "see sasl_passwd\n\nIt has a host and user:password in each line",
        "postmap sasl_passwd\nsystemctl reload postfix",
    ]);
}

#[test]
fn values_go_behind_a_name_in_another_literal() {
    for (text, expected) in [
        (
            "(from_static(\"x-api-key\"), HeaderValue::from_static(\"Xk29fLqP0vRt7WmZ3bYc\"))",
            "(from_static(\"x-api-key\"), HeaderValue::from_static(\"<SECRET>\"))",
        ),
        ("writeText \"adminpass\" \"regenTonne.8841\"", "writeText \"adminpass\" \"<SECRET>\""),
        (
            "DBI->connect(\"dbi:x\", \"stock\", \"Ge1ster+bahn\")",
            "DBI->connect(\"dbi:x\", \"stock\", \"<SECRET>\")",
        ),
        ("authenticate(\"kai\", \"marsh-Tulip77\")", "authenticate(\"kai\", \"<SECRET>\")"),
        (
            "key: '8f1b0c2d3e4f5a6b7c8d9e0f:8f1b0c2d3e4f5a6b7c8d9e0f1a2b3c4d8f1b0c2d3e4f5a6b7c8d9e0f1a2b3c4d'",
            "key: '<SECRET>'",
        ),
        ("routing_key: 8f1b0c2d3e4f5a6b7c8d9e0f1a2b3c4d", "routing_key: <SECRET>"),
        ("  password: fEsLYHuuazakACKtzg\n", "  password: <SECRET>\n"),
        ("$ wg genkey | tee k\nXk29fLqP0vRt/WmZ3bYc\n", "$ wg genkey | tee k\n<SECRET>\n"),
        (
            "$ cat config/master.key\n8f1b0c2d3e4f5a6b7c8d9e0f1a2b3c4d",
            "$ cat config/master.key\n<SECRET>",
        ),
        ("SIM_PIN=4471", "SIM_PIN=<SECRET>"),
        (": PSK \"seven blue gulls\"", ": PSK \"<SECRET>\""),
    ] {
        check(text, expected);
    }
    check_stays(&[
        "t(\"password\"), t(\"repeat2\")",
        "[\"password\" \"confirm2\"]",
        "curl -H \"Authorization: Bearer $TOKEN\" \"$BASE/v2/me\"",
        "routing_key: orders.created.v2",
        "  password: hashedPassword\n",
        "key: 'home:title'",
        "LED_PIN=17",
    ]);
}

#[test]
fn a_value_that_begins_like_a_quotation_of_another_language_goes_whole() {
    for secret in ["q!!0%aA000", "q/#/-0A000", "q{Kai}7Tor9000"] {
        check(&format!("export PASSWORD={secret}"), "export PASSWORD=<SECRET>");
    }
}

#[test]
fn passwords_go_by_their_place_in_code_and_logs() {
    for text in [
        "DriverManager.getConnection(\n    \"jdbc:x\", \"kai\", \"{}\");",
        "$ldap->bind('cn=kai', password => q{{}});",
        "my $password = qq[{}];",
        "DBI->connect($dsn, 'kai', q({}));",
        "127.0.0.1:6379> AUTH kai {}",
        "[0 10.0.0.9:51] \"AUTH\" \"kai\" \"{}\"",
        "$ pass show mail/kai\n{}\nuser: kai",
    ] {
        check(&text.replace("{}", "marsh!Tulip77"), &text.replace("{}", "<SECRET>"));
    }
    check_stays(&[
        "getConnection(url, user, password)",
        "my $sql = q{select password from users};",
        "password => q{},",
        "password = q(lookup)",
        "> AUTH user password",
        "250> AUTH PLAIN LOGIN",
        "(error) NOAUTH Authentication required.",
        "$ pass show mail/kai\nError: mail/kai is not in the password store.",
        "$ pass show mail/kai\nkai\n├── home",
        "tests pass a/b\nand then more",
    ]);
}

#[test]
fn secrets_go_in_blocks_and_pairs() {
    check(
        "<auth-user-pass>\nkai\nFjord-Moss42\n</auth-user-pass>",
        "<auth-user-pass>\nkai\n<SECRET>\n</auth-user-pass>",
    );
    check(
        "Client(\"harbour\", \"0f1e2d3c4b5a69788796a5b4c3d2e1f0\")",
        "Client(\"harbour\", \"<SECRET>\")",
    );
    check("Client(\"harbour\", \"v2-2024-stable\")", "Client(\"harbour\", \"v2-2024-stable\")");
}
