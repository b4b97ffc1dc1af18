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
fn what_looks_like_code_or_words_goes_where_its_place_says_so() {
    let words = "rapid gentle tourist bench large fruit napkin casino minor short gorilla valve";
    for (text, expected) in [
        (
            "define('AUTH_KEY', '31cX{>DomHuk?t 0.1DF:[Cj@F4i0ZG@:#=8YE|p_U&&}9_3tdw*wil@');",
            "define('AUTH_KEY', '<SECRET>');",
        ),
        ("password: 'k7${Lq#9vT!x'", "password: '<SECRET>'"),
        ("password: 'k7${LQ}#9vT!x'", "password: 'k7${LQ}#9vT!x'"),
        (
            ".acme.lan\tTRUE\t/\tTRUE\t1789000000\tsid\twwg4rl4vgw4yu1bgixdukhwa4qkgb4nj",
            ".acme.lan\tTRUE\t/\tTRUE\t1789000000\tsid\t<SECRET>",
        ),
        ("la contraseña del servidor es pepper4403", "la contraseña del servidor es <SECRET>"),
        ("das Passwort vom Server ist pepper4403", "das Passwort vom Server ist <SECRET>"),
        ("A senha do admin é harbor5301", "A senha do admin é <SECRET>"),
        (
            &format!("Your seed phrase, keep it safe:\n{words}"),
            "Your seed phrase, keep it safe:\n<SECRET>",
        ),
        (
            "accounts: [\"0x4b9cf2e64e639de1690e4384f12dc30c\"] // deployer private key",
            "accounts: [\"<SECRET>\"] // deployer private key",
        ),
    ] {
        check(text, expected);
    }
    for text in [
        "{\"password\": \"Passwort\", \"password_confirm\": \"Passwort bestätigen\"}",
        "arn:aws:secretsmanager:eu-central-1:123456789012:secret:prod/orders/db-AbC3dE",
    ] {
        check(text, text);
    }
    for (text, expected) in [
        ("RESTIC_PASSWORD='horse secret battery staple'", "RESTIC_PASSWORD='<SECRET>'"),
        ("password = \"MySecretPassword\"", "password = \"<SECRET>\""),
        ("password = \"swordfish secret\"", "password = \"<SECRET>\""),
        ("arn:aws:iam::1:role/x,password=k7Lq9vTx2Z", "arn:aws:iam::1:role/x,password=<SECRET>"),
        ("TOKEN=pre$(base64 -w0 file)", "TOKEN=pre$(base64 -w0 file)"),
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
        ("Cookie: sid=0a1b2c; theme=dark", "Cookie: sid=<SECRET>; theme=dark"),
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

#[test]
fn passwords_that_a_sentence_introduces_go() {
    for (text, expected) in [
        ("Das Passwort der Ablage lautet 7kQpX2mWz9.", "Das Passwort der Ablage lautet <SECRET>."),
        ("set the root password to Muvalo4471 today", "set the root password to <SECRET> today"),
        (
            "la contraseña del servidor ahora es Muvalo4471",
            "la contraseña del servidor ahora es <SECRET>",
        ),
        (
            "password for the wiki is 7kQpX2mWz9, ask me",
            "password for the wiki is <SECRET>, ask me",
        ),
        ("use 7kQpX2mWz9 as the password", "use <SECRET> as the password"),
        ("the pw for x is 7kQpX2mWz9", "the pw for x is <SECRET>"),
        ("vpn password Muvalo4471", "vpn password <SECRET>"),
        ("Initial password: lamp-otter-fjord", "Initial password: <SECRET>"),
        ("The password rule: must-change-yearly", "The password rule: must-change-yearly"),
        ("use token aB3dE5fG7hI9jK1lM3nO5pQ7 here", "use token <SECRET> here"),
        ("Heslo: 7kQpX2mWz9", "Heslo: <SECRET>"),
        ("Unseal Key 3: q7Pz+4fGmVw0sT/xYb2LkRaN9cUe5hJd", "Unseal Key 3: <SECRET>"),
        (
            "the passwords are hashed with Sha256Digest",
            "the passwords are hashed with Sha256Digest",
        ),
        ("password reset moves to v2024beta01", "password reset moves to v2024beta01"),
        ("the password check is in test_Login22", "the password check is in test_Login22"),
        ("password: &str) -> ScramSha256", "password: &str) -> ScramSha256"),
        ("the password hasher is ScramSha256", "the password hasher is ScramSha256"),
        ("migrate the password to postgres16", "migrate the password to postgres16"),
    ] {
        check(text, expected);
    }
}

#[test]
fn secrets_on_the_line_after_their_announcement_go() {
    for (text, expected) in [
        (
            "Sign in with this password:\n\n0a1b2c3d4e5f60718293\n",
            "Sign in with this password:\n\n<SECRET>\n",
        ),
        ("The password is:\\n  7kQpX2mWz9\\nKeep it.", "The password is:\\n  <SECRET>\\nKeep it."),
        ("## Password\n\n7kQpX2mWz9\n", "## Password\n\n<SECRET>\n"),
        ("$ gh auth token\n7kQpX2mWz97kQpX2mWz9\n", "$ gh auth token\n<SECRET>\n"),
        (
            "$ vault kv get -field=password secret/db\n7kQpX2mWz9",
            "$ vault kv get -field=password secret/db\n<SECRET>",
        ),
        ("$ openssl rand -hex 8\n0a1b2c3d4e5f6071", "$ openssl rand -hex 8\n<SECRET>"),
        ("Commits about the password:\n0a1b2c3d4e\n", "Commits about the password:\n0a1b2c3d4e\n"),
        (
            "Files with a password:\nsrc/login2022.rs\n",
            "Files with a password:\nsrc/login2022.rs\n",
        ),
    ] {
        check(text, expected);
    }
}

#[test]
fn arguments_of_logins_go_by_position() {
    for (text, expected) in [
        (
            "ConvertTo-SecureString 'letmein' -AsPlainText",
            "ConvertTo-SecureString '<SECRET>' -AsPlainText",
        ),
        (
            "ConvertTo-SecureString -String \"letmein\" -Force",
            "ConvertTo-SecureString -String \"<SECRET>\" -Force",
        ),
        ("ConvertTo-SecureString cmdlet", "ConvertTo-SecureString cmdlet"),
        ("AUTH PLAIN AGFubgBodW50ZXIy", "AUTH PLAIN <SECRET>"),
        ("250-AUTH LOGIN PLAIN", "250-AUTH LOGIN PLAIN"),
        ("net user ann letmein /add", "net user ann <SECRET> /add"),
        ("net user ann /add", "net user ann /add"),
        ("skopeo copy --src-creds=ann:letmein a b", "skopeo copy --src-creds=ann:<SECRET> a b"),
        ("lftp -u ann,letmein sftp://x", "lftp -u ann,<SECRET> sftp://x"),
        ("poetry config pypi-token.x letmein", "poetry config pypi-token.x <SECRET>"),
        ("ssh-keygen -f k -N letmein", "ssh-keygen -f k -N <SECRET>"),
        ("cmdkey /add:x /user:ann /pass:letmein", "cmdkey /add:x /user:ann /pass:<SECRET>"),
        ("cargo login 0a1b2c3d4e5f", "cargo login <SECRET>"),
        ("cargo login reads a token", "cargo login reads a token"),
        ("echo -e \"letmein\" | passwd ann", "echo -e \"<SECRET>\" | passwd ann"),
        ("echo x | grep passwd ann", "echo x | grep passwd ann"),
        ("nuget push a -ApiKey letmein", "nuget push a -ApiKey <SECRET>"),
        ("set -gx API_TOKEN letmein", "set -gx API_TOKEN <SECRET>"),
        (
            "net use x: \\\\host\\dir letmein /user:ann",
            "net use x: \\\\host\\dir <SECRET> /user:ann",
        ),
        ("a header Basic YW5uOmh1bnRlcjI=", "a header Basic <SECRET>"),
        (
            "Basic Authentication2024 and basic training",
            "Basic Authentication2024 and basic training",
        ),
    ] {
        check(text, expected);
    }
}

#[test]
fn values_go_whose_form_names_them() {
    for (text, expected) in [
        ("bindpw letmein", "bindpw <SECRET>"),
        ("x --secret-string letmein", "x --secret-string <SECRET>"),
        ("{user=ann, password=let-me-in}", "{user=ann, password=<SECRET>}"),
        ("{user=ann, password=other}", "{user=ann, password=other}"),
        (
            "<p name=\"jdbc.password\" value=\"letmein\"/>",
            "<p name=\"jdbc.password\" value=\"<SECRET>\"/>",
        ),
        ("<string name=\"api_key\">letmein</string>", "<string name=\"api_key\"><SECRET></string>"),
        ("\"password\": {\"value\": \"letmein\"}", "\"password\": {\"value\": \"<SECRET>\"}"),
        ("\"password\": {\"type\": \"value\"}", "\"password\": {\"type\": \"value\"}"),
        ("[\"--api-key\", \"letmein\"]", "[\"--api-key\", \"<SECRET>\"]"),
        ("[\"--password\", \"-v\"]", "[\"--password\", \"-v\"]"),
        ("\u{1b}[1mToken\u{1b}[0m  0a1b2c3d4e5f", "\u{1b}[1mToken\u{1b}[0m  <SECRET>"),
        (
            "<meta name=\"csrf-token\" content=\"letmein\">",
            "<meta name=\"csrf-token\" content=\"<SECRET>\">",
        ),
        ("curl --cookie \"sid=letmein\" x", "curl --cookie \"sid=<SECRET>\" x"),
        ("curl -b cookies.txt x", "curl -b cookies.txt x"),
        ("<li>Password: <code>7kQpX2mWz9</code>", "<li>Password: <code><SECRET></code>"),
        ("| `DB_PASS` | `7kQpX2mWz9` | x |", "| `DB_PASS` | `<SECRET>` | x |"),
        ("PASSWORD=`pwgen 16 1`", "PASSWORD=`pwgen 16 1`"),
        ("Passwort: erforderlich", "Passwort: erforderlich"),
        ("keyPassword 'Muvalo44'", "keyPassword '<SECRET>'"),
        ("the password 'plain' is wrong", "the password 'plain' is wrong"),
        ("api.key=0a1b2c3d4e5f60718293a4b5", "api.key=<SECRET>"),
        ("let token = String::from(\"letmein\");", "let token = String::from(\"<SECRET>\");"),
        ("secret = []byte(\"letmein\")", "secret = []byte(\"<SECRET>\")"),
        ("userpass = bytes('%s:%s' % pair)", "userpass = bytes('%s:%s' % pair)"),
        ("secret = load(\"letmein\")", "secret = load(\"letmein\")"),
        (
            "variable \"db_password\" {\n  type = string\n  default = \"letmein\"\n}",
            "variable \"db_password\" {\n  type = string\n  default = \"<SECRET>\"\n}",
        ),
        (
            "CREATE SECRET s (KEY_ID 'a', SECRET 'letmein')",
            "CREATE SECRET s (KEY_ID 'a', SECRET '<SECRET>')",
        ),
        ("smtp.login(\"ann\", \"letmein\")", "smtp.login(\"ann\", \"<SECRET>\")"),
        ("log in with ann / 7kQpX2mWz9", "log in with ann / <SECRET>"),
        ("https://0a1b2c3d4e5f60718293:x-oauth-basic@x/y", "https://<SECRET>@x/y"),
        ("api_key        0a1b2c3d4e5f60718293a4b5\n", "api_key        <SECRET>\n"),
        ("secret my-app-5f6d8c9b7a-secret", "secret my-app-5f6d8c9b7a-secret"),
        ("ann:letmein@tcp(127.0.0.1:3306)/x", "ann:<SECRET>@tcp(127.0.0.1:3306)/x"),
        ("https://x/y?jwt=0a1b2c3d4e5f6071", "https://x/y?jwt=<SECRET>"),
        ("https://x/bot/v2/hook/0a1b2c3d-4e5f-6071", "https://x/bot/v2/hook/<SECRET>"),
        ("SSHPASS='letmein' sshpass -e ssh x", "SSHPASS='<SECRET>' sshpass -e ssh x"),
        ("user: ann\npass: letmein\n", "user: ann\npass: <SECRET>\n"),
        ("login: ok\nall tests\npass: slowly\n", "login: ok\nall tests\npass: slowly\n"),
        ("define('NONCE_SALT', 'q7Pz4fGmVw0sTxYb2LkRaN9c')", "define('NONCE_SALT', '<SECRET>')"),
        ("_app_session=0a1b2c3d4e5f60718293a4b5", "_app_session=<SECRET>"),
    ] {
        check(text, expected);
    }
}

#[test]
fn words_of_a_wallet_go() {
    let words = "cabin drift eager flock grain hover ivory jolly knife lemon mango noble";
    check(&format!("the seed phrase is {words}."), "the seed phrase is <SECRET>.");
    check(&format!("MNEMONIC=\"{words}\""), "MNEMONIC=\"<SECRET>\"");
    let prose = "a mnemonic: remember these words when they matter and then write them down again";
    check(prose, prose);
}

#[test]
fn placeholders_stay() {
    for text in [
        "API_KEY=sk-xxxxxxxxxxxx",
        "TOKEN=ghp_...",
        "DB_PASSWORD=REPLACE_ME",
        "SECRET=insert-key-here",
        "API_KEY=sk-your-key-here",
        "x = prompt_password(\"Password: \")?",
        "password: \"@Microsoft.KeyVault(SecretUri=https://x/y)\"",
    ] {
        check(text, text);
    }
}

#[test]
fn passwords_go_that_a_sentence_calls_by_name() {
    for (text, expected) in [
        (
            "I changed the admin password to dei5quaweIs.",
            "I changed the admin password to <SECRET>.",
        ),
        ("use koOphAkaquo3 as the password", "use <SECRET> as the password"),
        ("log in as svc with password r-9yi-XCVcKOOU.", "log in as svc with password <SECRET>."),
        ("The password is `nordlicht` for now", "The password is `<SECRET>` for now"),
        ("mit Benutzer svc und Kennwort dei5quaweIs", "mit Benutzer svc und Kennwort <SECRET>"),
        (
            "Das Root-Passwort wurde auf dei5quaweIs geändert",
            "Das Root-Passwort wurde auf <SECRET> geändert",
        ),
        (
            "le mot de passe de la base est 3_i53NS7QYn19, dit-il",
            "le mot de passe de la base est <SECRET>, dit-il",
        ),
        ("la contraseña del servidor es dei5quaweIs", "la contraseña del servidor es <SECRET>"),
        ("Der API-Schlüssel ist tOgkj8nKiTuJxTzHWheE", "Der API-Schlüssel ist <SECRET>"),
        ("Password (WLAN): jamai4ivaji", "Password (WLAN): <SECRET>"),
        ("PASSWORD elastic = dei5quaweIs", "PASSWORD elastic = <SECRET>"),
        ("our app key is 0a1b2c3d4e5f60710a1b2c3d4e5f6071", "our app key is <SECRET>"),
        ("PIN: 482913", "PIN: <SECRET>"),
        ("$ cat db_password.txt\ndei5quaweIs\n", "$ cat db_password.txt\n<SECRET>\n"),
    ] {
        check(text, expected);
    }
    for text in [
        "the cache key is 3f786850e387550fdab836ed7e6dc881de23001b",
        "the password is `required` here",
        "password hashing takes Argon2id",
        "mit Benutzer und Kennwort anmelden",
        "the passphrase should have 7words",
        "ping: 482913",
        "change the token to TokenV2",
        "das Kennwort wird per E-Mail2SMS verschickt",
        "$ grep -r password src\nsrc/login2022.rs\n",
    ] {
        check(text, text);
    }
}

#[test]
fn values_go_beside_the_name_in_markup_and_tables() {
    for (text, expected) in [
        (
            "<entry key=\"db.password\">letmein</entry>",
            "<entry key=\"db.password\"><SECRET></entry>",
        ),
        (
            "<name>db.password</name>\n  <value>letmein</value>",
            "<name>db.password</name>\n  <value><SECRET></value>",
        ),
        ("<password type=\"x\">letmein</password>", "<password type=\"x\"><SECRET></password>"),
        ("<Password><![CDATA[letmein]]></Password>", "<Password><![CDATA[<SECRET>]]></Password>"),
        ("<td>Password</td><td>dei5quaweIs</td>", "<td>Password</td><td><SECRET></td>"),
        (
            "{\"value\":\"letmein1\",\"name\":\"DB_PASSWORD\"}",
            "{\"value\":\"<SECRET>\",\"name\":\"DB_PASSWORD\"}",
        ),
        (
            "\"ParameterKey\":\"DBPassword\",\"ParameterValue\":\"letmein\"",
            "\"ParameterKey\":\"DBPassword\",\"ParameterValue\":\"<SECRET>\"",
        ),
        (
            "\"db_password\": {\"sensitive\": true, \"value\": \"letmein\"}",
            "\"db_password\": {\"sensitive\": true, \"value\": \"<SECRET>\"}",
        ),
        (
            "\"type\": \"random_password\", \"a\": {\"result\": \"letmein\"}",
            "\"type\": \"random_password\", \"a\": {\"result\": \"<SECRET>\"}",
        ),
        (
            " id | api_key  | on\n----+----------+----\n 1  | dei5quaweIs | t\n",
            " id | api_key  | on\n----+----------+----\n 1  | <SECRET> | t\n",
        ),
        (
            "│ Name │ Secret │\n├──────┼────────┤\n│ a    │ dei5quaweIs │",
            "│ Name │ Secret │\n├──────┼────────┤\n│ a    │ <SECRET> │",
        ),
        ("USER   PASSWORD\nann    dei5quaweIs\n", "USER   PASSWORD\nann    <SECRET>\n"),
        (
            "INSERT INTO t (name, api_token) VALUES ('a', 'dei5quaweIs'), ('b', 'koOphAkaquo3');",
            "INSERT INTO t (name, api_token) VALUES ('a', '<SECRET>'), ('b', '<SECRET>');",
        ),
        ("key: \"M+OI4gJqhDVNj1/Y59GKrlS7hT/RPrP9PvCnZI3D2Ls=\"", "key: \"<SECRET>\""),
    ] {
        check(text, expected);
    }
    for text in [
        "<td>Password</td><td>required</td>",
        "<tr><th>Password</th><td>min. 12 characters</td></tr>",
        "<name>password.min</name><value>12</value>",
        "INSERT INTO users (name, password) VALUES (?, :password)",
        "INSERT INTO keys (primary_key, name) VALUES ('a1b2c3d4e5', 'x')",
        "NAME           TYPE     DATA\napi-token-x7k2p  Opaque   1",
        "SECRET           AGE\ndb-credentials-v2  5d12h",
        " a | Password policy\n---+-----\n x | min_length_12",
        "\"password\": {\"type\": \"string\", \"minLength\": 12}",
    ] {
        check(text, text);
    }
}

#[test]
fn secrets_go_that_commands_and_calls_take() {
    for (text, expected) in [
        (
            "docker login --password-stdin <<< 'letmein'",
            "docker login --password-stdin <<< '<SECRET>'",
        ),
        ("printf '%s' 'letmein' | sudo -S ls", "printf '%s' '<SECRET>' | sudo -S ls"),
        ("echo -e 'letmein\\nletmein' | passwd ann", "echo -e '<SECRET>' | passwd ann"),
        ("sqlplus scott/letmein@orcl", "sqlplus scott/<SECRET>@orcl"),
        ("jdbc:oracle:thin:erp/letmein@//x:1521/y", "jdbc:oracle:thin:erp/<SECRET>@//x:1521/y"),
        (
            "net use Z: \\\\h\\d /user:ann letmein /persistent:no",
            "net use Z: \\\\h\\d /user:ann <SECRET> /persistent:no",
        ),
        ("username ann secret 0 dei5quaweIs", "username ann secret 0 <SECRET>"),
        ("snmp-server community dei5quaweIs RO", "snmp-server community <SECRET> RO"),
        ("nuget sources add -password letmein", "nuget sources add -password <SECRET>"),
        ("curl -u 0a1b2c3d4e5f60718293: x", "curl -u <SECRET>: x"),
        ("WITH PASSWORD = N'letmein'", "WITH PASSWORD = N'<SECRET>'"),
        ("jwt.sign(payload, 'dei5quaweIs')", "jwt.sign(payload, '<SECRET>')"),
        ("new PDO('mysql:host=h', 'ann', 'letmein')", "new PDO('mysql:host=h', 'ann', '<SECRET>')"),
        ("setApiKey('tOgkj8nKiTuJxTzHWheE')", "setApiKey('<SECRET>')"),
        (
            "page.locator('#password').fill('dei5quaweIs')",
            "page.locator('#password').fill('<SECRET>')",
        ),
        ("get('PASSWORD', default='dei5quaweIs')", "get('PASSWORD', default='<SECRET>')"),
        ("password = \"\"\"letmein\"\"\"", "password = \"\"\"<SECRET>\"\"\""),
    ] {
        check(text, expected);
    }
    for text in [
        "echo done | passwd --help",
        "sqlplus / as sysdba",
        "jdbc:oracle:thin:@//ora1:1521/X",
        "net use Z: \\\\h\\d /user:ann /persistent:no",
        "enable password authentication",
        "jwt.sign(payload, process.env.JWT_SECRET)",
        "hmac.new(key, msg, hashlib.sha256)",
        "client.run(\"migrate2\")",
        "page.getByLabel('Password').click()",
        "expect(password).toBe('required')",
        "postgres://USER:PASSWORD@HOST:5432/DBNAME",
    ] {
        check(text, text);
    }
}

#[test]
fn what_a_sentence_calls_a_secret_goes() {
    for (text, expected) in [
        (
            "Das Kennwort für den Staging-Server lautet Herbst-Laub_48! , bitte nicht weitergeben",
            "Das Kennwort für den Staging-Server lautet <SECRET>! , bitte nicht weitergeben",
        ),
        (
            "the password for the billing-box is Herbst-Laub_48",
            "the password for the billing-box is <SECRET>",
        ),
        (
            "J'ai mis la clé d'API LbLR0oxMtDa5n9QRvdcDtQcbYtorV dans",
            "J'ai mis la clé d'API <SECRET> dans",
        ),
        (
            "my passphrase for that ssh key is \"seven gulls over harbour\"",
            "my passphrase for that ssh key is \"<SECRET>\"",
        ),
        ("# config/master.key\n349bfbb154879cf10b4c2a2a6f29f437", "# config/master.key\n<SECRET>"),
        ("GEHEIM=q7Zt9Kx2Lm4Vw8Rb", "GEHEIM=<SECRET>"),
        ("Zugangscode: q7Zt9Kx2Lm4Vw8Rb", "Zugangscode: <SECRET>"),
        (
            "| user | password |\n|:-|-:|\n| ana | q7Zt9Kx2Lm4Vw8Rb |",
            "| user | password |\n|:-|-:|\n| ana | <SECRET> |",
        ),
        ("secret: !vault |", "secret: !vault |"),
        (
            "the passphrase is \"the one from the wiki\"",
            "the passphrase is \"the one from the wiki\"",
        ),
        (
            "STRIPE_KEY=sk_test_xxxxxxxxxxxxxxxxxxxxxxxx",
            "STRIPE_KEY=sk_test_xxxxxxxxxxxxxxxxxxxxxxxx",
        ),
        ("the token for the parser is optional", "the token for the parser is optional"),
        ("the password for the form must be long", "the password for the form must be long"),
    ] {
        check(text, expected);
    }
}

#[test]
fn declarations_flow_maps_and_keys_in_groups_hold_secrets() {
    for (text, masked) in [
        ("Dim smtpPassword As String = \"a=NgLiv6\"", "Dim smtpPassword As String = \"<SECRET>\""),
        (
            "auth: {username: admin, password: marshtulipmarsh}",
            "auth: {username: admin, password: <SECRET>}",
        ),
        ("  password: lutn qifg krgw nbvi", "  password: <SECRET>"),
        ("  password: this text goes here", "  password: this text goes here"),
        ("enter this setup key: y2ol 5raz afz4 iqpn hj5t o5bx", "enter this setup key: <SECRET>"),
        ("the setup key with that team when ready", "the setup key with that team when ready"),
        ("setx ADO_PAT \"qlfo4i04kgd2kuvehaqulfqep19p\"", "setx ADO_PAT \"<SECRET>\""),
        ("-Dsonar.login=d69d0d637374ff85b937f8a8401068442939ce4a", "-Dsonar.login=<SECRET>"),
        ("pk_20532365_7F929EGKDVR7T4EXL8IBF6N3OH64N6YB", "<SECRET>"),
        ("con 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", "con <SECRET>"),
    ] {
        check(text, masked);
    }
    let key =
        "dev.key:1:-----BEGIN RSA PRIVATE KEY-----\ndev.key-2-MIIJKAIBAAKCAgEAUMkCY45u+OiidOQem\n";
    check(key, "dev.key:1:<SECRET>");
}
