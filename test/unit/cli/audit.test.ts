import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { auditCommand } from '../../../src/cli/audit.ts';
import { signer, Written } from '../audit/verify/journals.ts';

describe('drawbridge audit', () => {
  let folder: string;
  let journal: Written;
  let heads: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'drawbridge-verify-'));
    journal = new Written(3);
    heads = file('heads.json', headsOf(journal));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const file = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const headsOf = (...journals: Written[]): string =>
    JSON.stringify({
      kind: 'ConfigMap',
      data: Object.fromEntries(journals.map((one) => [one.id, JSON.stringify(one.head())])),
    });
  const log = (name: string, lines: readonly string[]): string => file(name, lines.map((line) => `${line}\n`).join(''));
  const run = async (...args: string[]): Promise<{ code: number; out: string; err: string }> => {
    let [out, err] = ['', ''];
    const input = Buffer.from(journal.lines.join('\n'));
    async function* stdin(): AsyncGenerator<Uint8Array> {
      // Splits the input at arbitrary positions.
      for (let at = 0; at < input.length; at += 100) yield input.subarray(at, at + 100);
    }
    const code = await auditCommand(args, {
      stdin: stdin(),
      print: (text) => {
        out += text;
      },
      printError: (text) => {
        err += text;
      },
    });
    return { code, out, err };
  };

  it('verify exits with 0 for an unchanged journal, from files or standard input', async () => {
    for (const source of [log('audit.log', journal.lines), '-']) {
      const { code, out, err } = await run('verify', source, '--heads', heads);
      assert.deepEqual([code, err], [0, '']);
      assert.match(out, new RegExp(`^chain ${journal.id} of drawbridge-0: lines 1 to 3, signed to 3\n`));
      assert.match(out, /\nINTACT: .*\n$/);
      assert.ok(out.includes(`heads are signed by key ${signer.publicKey}\n`));
    }
  });

  it('verify exits with 1 for a change, and names the file and the line', async () => {
    const changed = journal.lines.map((line, i) => (i === 1 ? line.replace('alice', 'mallory') : line));
    const path = log('audit.log', changed);
    const { code, out } = await run('verify', `--heads=${heads}`, path);
    assert.equal(code, 1);
    assert.ok(out.startsWith(`${path}:2: Changed: line 2 of the chain was changed (chain ${journal.id})\n`), out);
    assert.match(out, /\nCHANGED: /);
  });

  it('verify exits with 3 for a recording without a line, with 0 if lines may be missing, and counts it as not checked', async () => {
    const path = log('audit.log', journal.lines);
    const recordings = join(folder, 'recordings');
    mkdirSync(join(recordings, 'payments'), { recursive: true });
    const args = ['verify', path, '--heads', heads, '--recordings', recordings];
    const none = await run(...args);
    assert.equal(none.code, 0);
    assert.match(none.out, /\nrecordings: 0 complete, 0 incomplete, 0 deleted by retention\nINTACT: /);
    writeFileSync(join(recordings, 'payments', '0b0f8f2e-7f2a-4a52-8d0a-3f6c1d2e9a10.cast'), 'x');
    const { code, out } = await run(...args);
    assert.equal(code, 3);
    assert.match(out, /deleted by retention, 1 not checked: the given files lack their lines\nUNSIGNED: /);
    assert.equal((await run(...args, '--partial')).code, 0);
    const one = ['--session', '0b0f8f2e-7f2a-4a52-8d0a-3f6c1d2e9a10'];
    assert.equal((await run(...args, '--partial', ...one)).code, 3);
  });

  it('verify joins the parts into which a container runtime splits lines', async () => {
    const prefix = (stream: string, kind: string): string => `2026-11-28T20:00:00.123456789Z ${stream} ${kind} `;
    const split = journal.lines.flatMap((line) => [
      `${prefix('stdout', 'P')}${line.slice(0, 50)}`,
      `${prefix('stderr', 'F')}{"level":"info"}`,
      `${prefix('stdout', 'P')}${line.slice(50, 60)}`,
      `${prefix('stdout', 'F')}${line.slice(60)}`,
    ]);
    assert.equal((await run('verify', log('0.log', split), '--heads', heads)).code, 0);
    const removed = split.filter((_, i) => i !== 2);
    assert.notEqual((await run('verify', log('0.log', removed), '--heads', heads)).code, 0);
    assert.notEqual((await run('verify', log('0.log', split.slice(0, -1)), '--heads', heads)).code, 0);
  });

  it('verify exits with 2 if the folder of recordings cannot be read', async () => {
    const path = log('audit.log', journal.lines);
    const { code, err } = await run('verify', path, '--heads', heads, '--recordings', join(folder, 'absent'));
    assert.equal(code, 2);
    assert.match(err, /cannot read the recordings in ".*absent": ENOENT.*; name a folder that you may read/);
  });

  it('verify finds a changed byte that is invalid UTF-8', async () => {
    const bytes = Buffer.from(`${journal.lines.join('\n')}\n`);
    bytes[bytes.indexOf('ü')] = 0xff;
    writeFileSync(join(folder, 'audit.log'), bytes);
    assert.equal((await run('verify', join(folder, 'audit.log'), '--heads', heads)).code, 1);
  });

  it('verify exits with 3 for a chain without a head', async () => {
    const path = log('audit.log', [...journal.lines, ...new Written(1).lines]);
    const { code, out } = await run('verify', path, '--heads', heads);
    assert.equal(code, 3);
    assert.match(out, /not signed, 1 unproven\n/);
  });

  it('verify accepts several files in any order, several copies of heads, and keys', async () => {
    const older = heads;
    journal.write('later');
    const newer = file('newer.json', headsOf(journal));
    const files = [log('audit.log', journal.lines.slice(2)), log('audit.log.1', journal.lines.slice(0, 2))];
    const args = ['--heads', older, '--heads', newer, '--key', signer.publicKey];
    const another = Buffer.alloc(32, 7).toString('base64');
    assert.equal((await run('verify', ...files, ...args)).code, 0);
    assert.equal((await run('verify', files[0] ?? '', ...args)).code, 1);
    assert.equal((await run('verify', files[0] ?? '', '--partial', ...args)).code, 0);
    assert.equal((await run('verify', ...files, '--heads', newer, '--key', another)).code, 1);
    // The format in the ConfigMaps of public keys.
    const listed = Buffer.from(signer.publicKey, 'base64').toString('base64url');
    assert.equal((await run('verify', ...files, '--heads', newer, '--key', listed, '--key', another)).code, 0);
  });

  it('verify prints the report as JSON', async () => {
    const { code, out } = await run('verify', '-', '--heads', heads, '-o', 'json');
    assert.equal(code, 0);
    assert.deepEqual(JSON.parse(out).verdict, 'intact');
  });

  it('prints no control characters of files to the terminal', async () => {
    const path = log('a\u001b[31m.log', ['{"verdict":"granted"}']);
    const { out } = await run('verify', path, '--heads', heads);
    assert.ok(!out.includes('\u001b'), out);
  });

  const mistakes: [string, string[], RegExp][] = [
    ['no command', [], /unknown command "audit "; available command: audit verify/],
    ['no file', ['verify'], /name the files to verify/],
    ['a file twice', ['verify', '-', '-'], /"-" is given twice/],
    ['an unknown flag', ['verify', '-', '--nonsense'], /Unknown option '--nonsense'; see drawbridge audit --help/],
    ['a key that is no base64', ['verify', '-', '--key', `${'A'.repeat(42)}.A=`], /it must be a public key of 32 by/],
    ['a key that is too short', ['verify', '-', '--key', 'another'], /is "another"; it must be a public key/],
    ['an unknown form', ['verify', '-', '-o', 'xml'], /it must be text or json/],
    [
      'heads that are not there',
      ['verify', '-', '--heads', '/nonexistent'],
      /cannot read heads from "\/nonexistent": ENOENT.*; name a file that you wrote with kubectl get configmap NAME -n drawbridge-system -o json, where NAME is drawbridge-audit-heads, drawbridge-gateway-audit-heads, or drawbridge-inventory-audit-heads$/m,
    ],
    ['no cluster', ['verify', '-', '--kubeconfig', '/nonexistent'], /kubeconfig "\/nonexistent" cannot be used/],
  ];
  for (const [title, args, message] of mistakes) {
    it(`exits with 2 for ${title}`, async () => {
      const { code, out, err } = await run(...args);
      assert.deepEqual([code, out], [2, '']);
      assert.match(err, message);
    });
  }

  it('exits with 2 for a file that cannot be read or that contains no ConfigMap', async () => {
    const missing = await run('verify', join(folder, 'none'), '--heads', heads);
    assert.equal(missing.code, 2);
    assert.match(missing.err, /cannot read ".*none": ENOENT.*; name a file that exists and that you may read, or - /);
    const wrong = await run('verify', '-', '--heads', log('audit.log', journal.lines.slice(0, 1)));
    assert.match(wrong.err, /contains no ConfigMap/);
  });

  it('prints its help', async () => {
    const { code, out } = await run('--help');
    assert.equal(code, 0);
    assert.match(out, /^Usage: drawbridge audit verify/);
  });
});
