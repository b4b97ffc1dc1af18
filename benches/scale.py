#!/usr/bin/env python3
"""Adds N staged records in sessions of ten to an annalist SQLite store. gen.py STORE N [SEED]"""
import sqlite3, sys, json, random, hashlib, bisect, itertools
store, n, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 1
rng = random.Random(seed)
wrng = random.Random(99)
# 40,000 pseudo-words, zipf
syl = [c+v for c in "bcdfghjklmnprstvwz" for v in ("a","e","i","o","u","ar","en","il","or","un")]
words = list(dict.fromkeys("".join(wrng.choice(syl) for _ in range(wrng.choice((2,3,3,4)))) for _ in range(45000)))[:40000]
cum = list(itertools.accumulate(1/(r+3) for r in range(len(words))))
w = lambda: words[bisect.bisect(cum, rng.random()*cum[-1])]
ws = lambda k: " ".join(w() for _ in range(k))
rare = lambda: words[rng.randrange(2000, 40000)]
dig = lambda *p: hashlib.sha256("|".join(map(str, p)).encode()).digest()[:16]
db = sqlite3.connect(store); db.execute("PRAGMA synchronous=OFF")
NS = "scale"
one = lambda q: db.execute(q).fetchone()[0] or 0
s0, r0 = one("select max(no) from sessions")+1, one("select max(no) from runs")+1
T0, SPAN = 1_700_000_000_000, 730*86_400_000
late = one("select max(at) from records")
matters = []
def matter(): return dict(name=rare()+"_"+rare(), verb=w(), thing=w(), place=rare(), num=rng.randrange(5,900), kind=rng.choices("drat",(4,2,3,1))[0])
def claim():
    again = matters and rng.random() < .08
    m = rng.choice(matters) if again else matter()
    if not again: matters.append(m)
    num = m["num"] + (rng.randrange(3) if again else 0)
    k = m["kind"]
    if k == "d":
        ch = f"{m['verb']} {m['thing']} of {m['name']} with {num} {m['place']}"
        opts = [ch, f"{rare()} {m['thing']} for {m['name']}"] if rng.random() < .5 else [ch]
        return "decision", dict(options=opts, chosen=ch, rationale=f"the {m['place']} {ws(6)} {rare()}"), "chosen", ch
    if k == "t":
        t = f"how the {m['thing']} of {m['name']} {m['verb']} in {m['place']}?"
        return "discussion", dict(topic=t, points=[ws(4), ws(5)]), "topic", t
    if k == "a":
        a = f"{m['verb']} the {m['thing']} of {m['name']} in {m['place']}"
        return "attempt", dict(action=a, result=f"{ws(4)} after {num} s", succeeded=rng.random()<.7), "action", a
    s = f"{m['verb']} the {m['thing']} of {m['name']} in {m['place']} within {num} seconds"
    return "request", dict(intent=f"so that {ws(4)} {m['name']}", summary=s), "summary", s
done = 0; i = 0
while done < n:
    sn, rn = s0+i, r0+i
    at = (late + 1000 if late else 0) + i*60_000 if late else T0 + SPAN*done//max(n,1)
    ses = dig(seed, "s", sn)
    db.execute("insert into sessions (no,id,namespace,format,native_id,path,title,cwd,started_at,entries,lines,findings,masked,ended_at) values (?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
      (sn, ses, NS, "claude-code", f"native-{seed}-{sn}", f"/x/{seed}-{sn}.jsonl", ws(4), "/x", at, 20, 20, "[]", "{}", at+600000))
    db.execute("insert into runs (no,id,session_no,slice,slice_index,first_ordinal,first_part,last_ordinal,last_part,asking,model,prompt_id,prompt_version,schema_version,rung,generation,asks,calls,prompt_tokens,cached_tokens,completion_tokens,cost_micros,state,findings,started_at,finished_at) values (?,?,?,?,0,0,0,19,0,?,?,?,1,1,'forced_tool',0,1,1,1,0,1,0,'done','[]',?,?)",
      (rn, dig(seed,"r",rn), sn, dig(seed,"sl",sn), dig("asking"), "m", "extract", at, at))
    for e in range(20):
        db.execute("insert into entries (place,line,speaker,kind,branch,at,text) values (?,?,?,?,?,?,?)",
          (sn*2**32+e, e+1, "person" if e%2==0 else "assistant", "prompt" if e%2==0 else "text", "active", at+e*10000, ws(12)))
    for j in range(min(10, n-done)):
        kind, body, field, text = claim()
        o = 2*j
        ev = [dict(field=field, ordinal=o, line=o+1, bytes=[0,len(text)], speaker=rng.choice(["person","assistant","assistant"]), found="exact", words=text)]
        db.execute("insert into records (id,run_no,kind,state,score,first_ordinal,last_ordinal,at,body,evidence) values (?,?,?,?,?,?,?,?,?,?)",
          (dig(seed,"rec",rn,j), rn, kind, "staged", 1.0, 0, 19, at+o*10000, json.dumps(body), json.dumps(ev)))
        done += 1
    i += 1
db.commit()
print("added", done, "records in", i, "sessions")
