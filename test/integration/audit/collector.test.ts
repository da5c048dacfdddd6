import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFile, mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from '../../../sandbox/wait.ts';
import { auditCommand } from '../../../src/cli/audit.ts';
import { Written } from '../../unit/audit/verify/journals.ts';

/** As a container runtime writes lines of a container: it splits lines of over 16 KiB. */
const criLines = (lines: readonly string[], partLength: number): string =>
  lines
    .flatMap((line) => {
      const parts = line.match(new RegExp(`.{1,${partLength}}`, 'gs')) ?? [];
      const written = parts.map((part, i) => `stdout ${i + 1 < parts.length ? 'P' : 'F'} ${part}`);
      return ['stderr F {"level":"info","message":"serving"}', ...written];
    })
    .map((line) => `2026-11-28T20:00:00.123456789Z ${line}\n`)
    .join('');

describe('examples/audit/rsyslog.conf', () => {
  let folder: string;
  let rsyslog: ChildProcess;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'drawbridge-rsyslog-'));
    await mkdir(join(folder, 'pods'));
    const example = await readFile('examples/audit/rsyslog.conf', 'utf8');
    const configuration = example
      .replaceAll('/var/log/pods', join(folder, 'pods'))
      .replaceAll('/var/log/drawbridge', join(folder, 'kept'))
      .replace('global(', `global(workDirectory="${folder}" `);
    await writeFile(join(folder, 'rsyslog.conf'), configuration);
    const args = ['-n', '-f', join(folder, 'rsyslog.conf'), '-i', join(folder, 'rsyslog.pid')];
    rsyslog = spawn('rsyslogd', args, { stdio: 'ignore' });
  });
  after(async () => {
    if (rsyslog.kill()) await once(rsyslog, 'exit');
    await rm(folder, { recursive: true });
  });

  const kept = (pod: string): Promise<string> => readFile(join(folder, 'kept', `${pod}.log`), 'utf8').catch(() => '');

  it('keeps a journal that can be verified when the Pods and their logs are gone', async function () {
    this.timeout(60_000);
    const journals = new Map<string, Written>();
    for (const pod of ['drawbridge-7d9c-x1', 'drawbridge-gateway-5f6b-x2']) {
      const journal = new Written(10);
      journals.set(pod, journal);
      const logs = join(folder, 'pods', `drawbridge-system_${pod}_0b0f8f2e-7f2a`, 'drawbridge');
      await mkdir(logs, { recursive: true });
      await writeFile(join(logs, '0.log'), criLines(journal.lines.slice(0, 5), 16_384));
      const has = (count: number) => async () => (await kept(pod)).includes(`"seq":${count},`);
      await until(`the first lines of ${pod}`, has(5), { timeoutMs: 20_000 });
      await appendFile(join(logs, '0.log'), criLines(journal.lines.slice(5), 100));
      await until(`all lines of ${pod}`, has(10), { timeoutMs: 20_000 });
      await rename(join(folder, 'pods', `drawbridge-system_${pod}_0b0f8f2e-7f2a`), join(folder, `gone-${pod}`));
    }
    const heads = join(folder, 'heads.json');
    const data = Object.fromEntries(
      [...journals.values()].map((journal) => [journal.id, JSON.stringify(journal.head())]),
    );
    await writeFile(heads, JSON.stringify({ kind: 'ConfigMap', data }));
    let printed = '';
    const code = await auditCommand(
      ['verify', '--heads', heads, ...[...journals.keys()].map((pod) => join(folder, 'kept', `${pod}.log`))],
      {
        stdin: process.stdin,
        print: (text) => {
          printed += text;
        },
        printError: (text) => {
          printed += text;
        },
      },
    );
    assert.equal(code, 0, printed);
    assert.doesNotMatch(await kept('drawbridge-7d9c-x1'), /"level"/);
  });
});
