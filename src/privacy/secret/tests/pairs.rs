//! Passwords of plain letters, which only their place gives away; and plain words in such places that are none.

use super::check;

#[track_caller]
fn check_forms(forms: &[&str]) {
    for form in forms {
        for value in ["marshtulip", "violinpancakes"] {
            check(&form.replace("{}", value), &form.replace("{}", "<SECRET>"));
        }
    }
}

#[track_caller]
fn check_stays(texts: &[&str]) {
    texts.iter().for_each(|text| check(text, text));
}

#[test]
fn plain_words_go_in_lists_of_pairs() {
    check_forms(&[
        "user: bob, password: {}",
        "user=bob, password={}",
        "(user: bob, password: {})",
        "host: db1, port: 22, user: bob, password: {}",
        "Login: bob | Password: {} | Role: admin",
        "Benutzer: bob, Passwort: {}",
        "identifiant : bob / mot de passe : {}",
        "usuario: bob, clave: {}",
        "clave: {}",
        "Clave del wifi: {}",
        "Mot de passe provisoire : {}",
        "the admin password: {}",
        "password for bob: {}",
        "Password (bob): {}",
        "password -> {}",
        "password: {} (staging)",
        "curl -H 'X-Api-Key: {}' https://h",
        "creds: bob / {}",
        "user/pass: bob/{}",
        "Driver={x};Server=h;Uid=bob;Pwd={{}};",
    ]);
    check_stays(&[
        "fn login(user: string, password: string)",
        "user, password = credentials",
        "{ user: username, password: userpassword }",
        "user: bob, role: administrator",
        "password reset: instructions",
        "second pass: optimizations",
        "Palabra clave: sostenibilidad",
        "La clave del éxito es paciencia",
        "La clave es entender el problema",
        "password (string): required",
    ]);
}

#[test]
fn plain_words_go_in_sentences() {
    check_forms(&[
        "you can log in as admin, pw is {} (change it after)",
        "La clave del wifi es {} y la red se llama Taller.",
        "Passwort ist {}, Benutzer ist bob",
        "das Passwort ist jetzt {}.",
        "mit Benutzer bob und Passwort {}",
        "I set the password to {}",
        "Passwort auf {} geändert",
        "use {} as the password",
        "{} is the password",
        "whats the guest wifi pass again?\nSam: {}",
    ]);
    check_stays(&[
        "the password is important and should be long",
        "username and password combination",
        "with password protection enabled",
        "he used his birthday as the password",
        "use environment variables as the password source",
        "use whitespace as part of the password",
        "user account password protection",
    ]);
}

#[test]
fn plain_words_go_in_settings_and_commands() {
    check_forms(&[
        "account office\nhost h\nuser lena\npassword {}\ntls on",
        "username noc privilege 15 password 0 {}",
        "enable secret {}",
        "poll h user \"bob\" password \"{}\"",
        "hibernate.connection.password {}",
        "PRAGMA key = '{}';",
        "a1 LOGIN bob {}",
        "const S = process.env.SECRET || '{}';",
        "jwt.sign(payload, '{}')",
        "page.fill(\"#password\", \"{}\")",
        "<input type=\"password\" value=\"{}\">",
        "<td>password</td><td>{}</td>",
        "| password | {} |",
        "USER   PASSWORD\nbob    {}\n",
        "openssl rsa -passin pass:{}",
    ]);
    check_stays(&[
        "enable password encryption",
        "openssl rsa -passin env:KEYPASS -out k",
        "openssl enc -pass fd:3 -in a",
        "Set-Cookie: theme=dark; Path=/",
        "Cookie: sidebar=collapsed; tz=Europe/Berlin",
        "{\"password\": \"Mot de passe\", \"apiKey\": \"API-Schlüssel\"}",
        "password=Passwort",
        "API_KEY=changeme",
        "existingSecret: database",
        "'password' => 'required|string|min:8'",
        "wget --ask-password https://h",
        "postgresql://postgres:postgres@localhost/db",
    ]);
}

#[test]
fn tokens_of_unknown_vendors_go() {
    let random = "Ab12Cd34Ef56Gh78Ij90Kl12Mn34Op56Qr78";
    check(&format!("uses acme_{random} now"), "uses <SECRET> now");
    check_stays(&[
        &format!("sha512_{random}"),
        "req_011CSHoEeqs5C35K2UUqR7Fy",
        &format!("test_{}", "CamelCaseNameOfAVeryLongTest"),
    ]);
}
