//! Numbers, passwords and passphrases that sentences of many languages give; and numbers that only stand near such words.

use super::check;

/// Checks each form with a value; `{}` is the value.
#[track_caller]
fn check_forms(forms: &[&str], value: &str) {
    for form in forms {
        check(&form.replace("{}", value), &form.replace("{}", "<SECRET>"));
    }
}

#[track_caller]
fn check_stays(texts: &[&str]) {
    texts.iter().for_each(|text| check(text, text));
}

#[test]
fn numbers_go_that_a_word_makes_a_pin() {
    let forms = [
        "the PIN for the scanner is {}, try it",
        "use {} as the PIN for the scanner",
        "{} is the PIN of that phone",
        "voicemail pin: {}",
        "unlock it with the passcode {}",
        "Die PIN vom Diensthandy lautet {}, bitte nicht notieren",
        "gib {} als PIN ein",
        "mon code PIN c'est {}",
        "el PIN de la tarjeta es {}",
        "il pin della carta è {}",
        "o PIN do cofre: {}",
        "de pincode van de tablet is {}",
        "kod PIN do szafki: {}",
        "пин-код от сейфа {}",
        "PIN-koden til døren er {}",
        "暗証番号は{}です",
        "비밀번호는 {}이에요",
        "门禁密码是{}",
    ];
    check_forms(&forms, "4471");
    check_forms(&forms, "903114");
}

#[test]
fn numbers_go_that_a_word_makes_a_code_for_somebody() {
    let forms = [
        "the 2FA code is {}",
        "enter {} when it asks for the verification code",
        "my authenticator shows {} right now",
        "the one-time code they texted me: {}",
        "the alarm code changed to {} last night",
        "the code for the front gate is {}, ring twice",
        "Der Code aus der SMS ist {}",
        "Bestätigungscode: {}",
        "le code de la porte est {}",
        "code à usage unique reçu par SMS : {}",
        "el código de verificación que me llegó es {}",
        "codice di accesso al cancello: {}",
        "o código do alarme mudou para {}",
        "de verificatiecode is {}",
        "kod z SMS-a to {}",
        "kapının kodu {}",
        "SMS ile gelen kod: {}",
        "{} ist dein Bestätigungscode",
        "{} — ваш код подтверждения",
        "use code {} to sign in",
        "o código que chegou foi {}",
        "der Code vom Fahrradschloss ist {}",
        "код из смс {}",
        "Код подтверждения: {}",
        "確認コードは{}です",
        "验证码：{}，快",
        "인증번호는 {} 입니다",
    ];
    check_forms(&forms, "448190");
    check_forms(&forms, "448 190");
}

#[test]
fn numbers_stay_that_count_or_name_something_else() {
    check_stays(&[
        "the PIN pad is broken",
        "PIN 5 of the connector is ground",
        "GPIO pin 1024 is high",
        "pin the version to 2024",
        "error code 1042 means timeout",
        "the login returned error code 5003",
        "exit code from the login test is 1370",
        "the code is 2000 lines long",
        "the access code has 1200 lines",
        "status code 4040, postcode 10115",
        "use code 128 barcodes or code 4471",
        "the verification code expires after 3600 seconds",
        "the OTP lives 3000 ms",
        "otp_timeout=3000 and pin_dialog.dart:4127",
        "access code path changed in 2024",
        "tests for the PIN dialog: 1042 passed",
        "the pin count is 1152",
        "wo steht der PIN-Code-Dialog? In Zeile 4127",
        "der Fehlercode bei der Anmeldung ist 4711",
        "le code postal est 75011",
        "el código de error es 5003",
        "kod błędu logowania to 5003",
        "код ответа 4040",
        "パスワードは1024文字以上",
        "密码长度为1024位",
        "пароль от 2024 года устарел",
        "das Passwort hat 1024 Zeichen",
        "./tool door --code 12345678",
        "the authentication code is in auth.rs:1042",
        "the entry code is 8192",
        "failure status from access code 5003: error in access code 5003",
        "with password format3 disabled",
    ]);
}

#[test]
fn passwords_go_in_many_languages() {
    for value in ["Marsch.Tulpe77", "marsh_Tulip+77", "Tulpe!Marsch7"] {
        check_forms(
            &[
                "Datenbankpasswort bitte auf {} setzen",
                "Das Admin-Kennwort habe ich auf {} zurückgesetzt",
                "Passwort lautet »{}«",
                "la password dell'utente è «{}», cambiata ieri",
                "connecte-toi en root avec le mot de passe {}",
                "segue a palavra-passe do certificado: {}",
                "troca a senha pra {}",
                "nieuwe ww: {}",
                "log in als beheerder met ww {}",
                "zaloguj się (hasłem {}) i sprawdź",
                "heslo do databáze je {}",
                "wifi şifresi: {}",
                "ο κωδικός είναι {}",
                "كلمة المرور هي {}",
                "зайди под root с паролем {}",
                "パスワードは{}です",
                "IDはroot、PWは{}で入れる",
                "密码：{}",
                "비번은 {} 이야",
                "anmelden mit {}",
                "what was the wiki password? I used {}",
            ],
            value,
        );
    }
    for value in ["Гроза1987ельник", "Käsekuchen!42"] {
        check_forms(&["логин root, пароль — {}, зайди", "Das Passwort ist {}, danke"], value);
    }
    check_forms(&["my password is still {}, sorry", "as root with password {} please"], "hunter2");
    check_stays(&[
        "Passwort ist falsch",
        "le mot de passe est obligatoire",
        "das Passwort steht in config/prod.yaml",
        "wir haben das Passwort-Hashing auf PBKDF2-HMAC-SHA256 umgestellt",
        "we changed the password hashing from SHA-1 to AES-256-GCM",
        "wachtwoord gewijzigd op 2024-05-01",
        "hasło zmieniono w wersji 2.4.1",
        "the password is Base64-encoded",
        "the password rule: 8-64 characters",
        "パスワードは12文字以上にしてください",
        "пароль должен содержать 12символов",
        "anmelden mit OAuth2",
    ]);
}

#[test]
fn passphrases_go_without_quotes() {
    check_forms(
        &[
            "the passphrase is: {} - keep it",
            "The passphrase for the backup is {}, write it down",
            "Passphrase des Schlüssels: {}",
            "la phrase secrète est : {}",
        ],
        "seven gulls 19 harbour drift",
    );
    check("mot de passe du wifi : « petit canard 77 »", "mot de passe du wifi : « <SECRET> »");
    check_stays(&[
        "the passphrase is stored in the vault",
        "the passphrase is never written to disk",
        "Passphrase: enter the one you chose",
        "passphrase: see the wiki page about backups",
        "la passphrase est demandée au démarrage",
    ]);
}

#[test]
fn tokens_go_that_a_sentence_gives_in_many_languages() {
    check_forms(
        &[
            "Voici le jeton d'accès de notre forge, il est valable jusqu'à lundi prochain : {}",
            "アクセストークン：{} です",
            "APIキーは「{}」です",
            "密钥：{}",
            "ключ API: {}",
            "klucz API: {}",
            "de API-sleutel is {}",
        ],
        "Xk29fLqP0vRt7WmZ3bYcXk29fLqP0vRt7WmZ3bYc",
    );
    check_stays(&[
        "первичный ключ — order_id2",
        "de sleutel is `map.kunde.v2`",
        "密钥在 prod-2024 里",
    ]);
}

#[test]
fn passwords_go_in_quotes_of_print() {
    for value in ["marshtulip", "Tulpe77", "marsh_Tulip+77"] {
        check_forms(
            &[
                "guest network “Fjord”, password “{}”, also upstairs",
                "mein pw ist jetzt auf „{}“ geändert",
                "„{}“ ist das Passwort für den Drucker",
                "j'ai mis « {} » comme mot de passe du NAS",
                "‘{}’ is my new password",
                "la contraseña es «{}»",
                "lösenordet är ”{}”",
                "パスワードは「{}」だよ",
            ],
            value,
        );
    }
    check("пароль «камыш»", "пароль «<SECRET>»");
    check_stays(&[
        "the fields “password” and “username” are empty",
        "das Feld „Passwort“ heißt „Kennwort“",
        "the password is “required”",
        "le champ « mot de passe » est « obligatoire »",
    ]);
}

#[test]
fn passwords_go_before_a_verb_or_behind_a_label_in_many_languages() {
    check_forms(
        &[
            "yeni parolam {} oldu",
            "az új jelszavam {} lett",
            "uusi salasanani on {}",
            "{} is my new password for the forum",
            "{} c'est mon nouveau mot de passe",
            "Kullanıcı adı: ayşe\nŞifre: {}",
            "Utilizator: ion\nParolă: {}",
            "Κωδικός: {}",
            "解压密码：{}",
            "Şifre:\n{}",
        ],
        "marsh_Tulip77",
    );
    check("Kennwort: rotkehlchenlied\n", "Kennwort: <SECRET>\n");
    check("Пароль: камышовка\n", "Пароль: <SECRET>\n");
    check_stays(&[
        "KeePassXC is my new password manager",
        "Şifre: zorunlu",
        "Пароль: обязательный",
        "Hasło: wymagane",
    ]);
}

#[test]
fn plain_words_go_that_a_sentence_calls_the_password() {
    check_forms(
        &[
            "the password for the archive is {}",
            "my password is {} — all small letters",
            "das Passwort ist {}.",
            "le mot de passe est {}",
            "la contraseña es {}, todo junto",
        ],
        "marshtulip",
    );
    check_stays(&[
        "the password is mandatory",
        "the password is encrypted — see below",
        "my password is everything.",
        "das Passwort ist veraltet",
        "le mot de passe est incorrect",
        "la contraseña es obligatoria.",
        "the password hasher is argonwrapper",
        "the password is somehow weak",
    ]);
}

#[test]
fn passwords_go_on_the_next_line_of_a_mail() {
    for text in [
        "> Your user is kai and your temporary password\n> is {}\n>\n> Change it",
        "> votre mot de passe\n> provisoire est {}\n",
        "your new password is\n{} and stays valid",
        "> > Passwort:\n> >\n> > {}\n",
    ] {
        check_forms(&[text], "marsh-Tulip-77");
    }
    check_stays(&[
        "we changed the password\nit is version-2.4-beta1",
        "> the password\n> is stored in vault-2024",
    ]);
}

#[test]
fn codes_of_letters_and_digits_go() {
    check_forms(
        &[
            "the verification code is {}", "Anmeldecode lautet {}", "código de acceso: {}",
            "验证码：{}",
        ],
        "G-448190",
    );
    for code in ["7KD2R", "K7P-4QX", "4471B"] {
        check_forms(&["the access code is {}", "Zugangscode: {}"], code);
    }
    check_forms(&["链接 https://disk.example.org/s/1 提取码：{}", "访问码: {}"], "m4wq");
    check_forms(&["ich soll eine TAN eingeben, hier steht {}", "Onay kodunuz {}"], "448190");
    check_stays(&[
        "the verification code (RFC-6238) is standard",
        "ticket OPS-44100 is about the verification code",
        "the access code is SHA256",
        "see the access code in EN12209",
        "提取码：无",
    ]);
}

#[test]
fn lists_of_recovery_codes_go() {
    for name in [
        "my backup codes for the forge, in case the phone dies:",
        "Wiederherstellungscodes:",
        "codes de secours du forum :",
        "kody zapasowe:",
        "резервные коды",
        "リカバリーコード：",
    ] {
        let text = |code: &str| format!("{name}\n  - {code}\n  - {code}\n");
        check(&text("7c9d1-b7e04"), &text("<SECRET>"));
    }
    check("Recovery codes:\n1. 8392 1184\n", "Recovery codes:\n1. <SECRET> <SECRET>\n");
    check_stays(&[
        "recovery codes:\n- see the wiki\n",
        "error codes:\n  7c9d1-b7e04\n",
        "recovery codes\n\ncommit 7c9d1b7e04\n",
    ]);
}

#[test]
fn printed_keys_of_routers_go() {
    check_forms(
        &[
            "WiFi key: {}",
            "WLAN-Schlüssel klebt am Router: {}",
            "clé wifi : {}",
            "wifi şifresi {}",
            "пароль от вайфая {}",
        ],
        "58301948572039485712",
    );
    for value in ["reedwarbler77", "reed77warbler", "reed-warbler-77"] {
        check_forms(
            &[
                "what was the password again?\nB: {}",
                "wifi şifresi {}",
                "wifi密码是{}",
                "lösenordet till wifi är {}",
                "SSID: Fjord\nKey: {}",
                "WIFI:T:WPA;S:Fjord;P:{};;",
            ],
            value,
        );
    }
    check_stays(&["what is the password?\nask for reset2.html", "wifi driver reed77warbler"]);
    check_stays(&[
        "the wifi serial number is 58301948572039485712",
        "WLAN-Schlüssel geändert am 20240101",
    ]);
}

#[test]
fn words_go_that_have_the_shape_of_a_password_near_the_word_for_it() {
    let forms = [
        "das Kennwort für den Drucker im Keller ist seit gestern {}",
        "kennwort {} und nutzer kasse, dann gehts",
        "le mdp root : {} sur la machine de test",
        "zmieniłem hasło użytkownika kasa na {} wczoraj",
        "heslo k serveru je {}, port nech",
        "log in met ww {} op de oude kassa",
        "a palavra-passe do portal passou a ser {} desde ontem",
        "metti utente cassa e come parola d'accesso {}",
        "passordet på ruteren er {}",
        "{} should work as the password for the kiosk",
        "so the new password on the backup box, which I changed last night, is {}",
    ];
    check_forms(&forms, "gullQuay_64");
    check_forms(&forms, "Fjord-Lantern81");
    check_forms(&["kennwort {} und nutzer kasse", "ww {} op de kassa", "mdp {}"], "heron.Moss8");
    check_forms(&["j'ai remis le mdp à {} hier", "kennwort {}, nutzer kasse"], "lanterne4quai");
}

#[test]
fn names_stay_that_stand_near_the_word_for_a_password() {
    check_stays(&[
        "the password policy changed in PostgreSQL15 and Keycloak24",
        "the login page shows a password field since Release_2024",
        "password field of the class UserAccountV2",
        "das Passwort liegt im Tresor von Harbour_Team2",
        "the password test runs on Ubuntu-22.04 and Debian-12",
        "the password file was moved to backup_2024-05-01",
        "the password manager 1Password8 works on iPadOS17",
        "la contraseña se cifra con AES-256-GCM",
        "the password step in harbour.md:42",
        "the password checks call `validateInput2` and stop",
    ]);
}

#[test]
fn codes_go_that_somebody_is_asked_to_enter() {
    let forms = [
        "if it asks for the PIN just enter {}",
        "wenn er nach der PIN fragt gib {} ein",
        "kiedy poprosi o PIN do karty, wpisz {}",
    ];
    check_forms(&forms, "4471");
    check(
        "la combinazione della cassaforte è 81-17-42",
        "la combinazione della cassaforte è <SECRET>",
    );
    check("de toegangscode luidt R4T-77QW-ZK, tot zo", "de toegangscode luidt <SECRET>, tot zo");
    check(
        "use one of the recovery codes. k4wq-m7dx is left",
        "use one of the recovery codes. <SECRET> is left",
    );
    check(
        "it asks for the passphrase, enter \"seven gulls over fjord\"",
        "it asks for the passphrase, enter \"<SECRET>\"",
    );
    check("PIN entry at 10-12-2024 failed", "PIN entry at 10-12-2024 failed");
}
