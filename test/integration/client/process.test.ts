import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from '../../../sandbox/wait.ts';
import { program } from '../../support/client.ts';
import { ScriptedCluster } from '../../support/scripted-cluster.ts';

const request = {
  apiVersion: 'crds.wizardofoz.co/v1alpha1',
  kind: 'PodAccessRequest',
  metadata: { name: 'open', namespace: 'payments', uid: 'u1', resourceVersion: '1' },
  spec: { templateName: 'shell', requester: { username: 'alice' } },
  status: { state: 'Open', ready: true, podName: 'open-access', grant: {} },
};

describe('the process of the client', () => {
  let folder: string;
  let cluster: ScriptedCluster;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'drawbridge-process-'));
    cluster = await ScriptedCluster.open({ podaccessrequests: [request] });
  });
  after(async () => {
    rmSync(folder, { recursive: true });
    await cluster.close();
  });

  const start = (...command: string[]): ChildProcess =>
    spawn('bash', ['-c', 'exec "$@"', 'bash', ...command], {
      env: { ...process.env, KUBECONFIG: cluster.kubeconfig, PATH: `${folder}:${process.env['PATH']}` },
      stdio: ['ignore', 'pipe', 'pipe'],
    });

  it('fails, and says so, if a disk is too full for its output', async () => {
    const child = start('bash', '-c', `"${process.execPath}" "${program}" list -o json >/dev/full`);
    let stderr = '';
    child.stderr?.on('data', (chunk: Buffer) => {
      stderr += chunk;
    });
    const [code] = await once(child, 'close');
    assert.equal(code, 1);
    assert.match(stderr, /^drawbridge: cannot write the output: .*ENOSPC.*; the output is incomplete$/m);
  });

  it('ends quietly, with the code of SIGPIPE, if nothing reads its output', async () => {
    const script = `"${process.execPath}" "${program}" doctor 2>"${folder}/stderr" | true; exit \${PIPESTATUS[0]}`;
    const [code] = await once(start('bash', '-c', script), 'close');
    assert.equal(code, 141);
  });

  it('passes SIGTERM on to kubectl, and ends with it', async () => {
    const started = join(folder, 'started');
    writeFileSync(join(folder, 'kubectl'), `#!/bin/sh\necho "$@" >"${started}"\nexec sleep 300\n`);
    chmodSync(join(folder, 'kubectl'), 0o700);
    const child = start(process.execPath, program, 'exec', 'open');
    await until('kubectl to run', () => existsSync(started), { timeoutMs: 30_000 });
    child.kill('SIGTERM');
    const [code] = await once(child, 'close');
    assert.equal(code, 143);
  });
});
