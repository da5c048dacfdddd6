// Records the calls of a real kube-apiserver to the webhooks, for test/unit/admission/recorded.test.ts:
//   node --import tsx test/support/record-reviews.ts
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { join } from 'node:path';
import { install } from '../../sandbox/installation.ts';
import { startPlane } from '../../sandbox/plane.ts';
import { freePorts } from '../../sandbox/ports.ts';
import { FileCertificate } from '../../src/admission/certificate.ts';
import { startAdmissionServer } from '../../src/admission/server.ts';
import { systemClock } from '../../src/kit/clock.ts';
import { createLog } from '../../src/observe/log.ts';
import { World } from '../unit/admission/support.ts';

const folder = join(import.meta.dirname, '..', 'fixtures', 'reviews');
const root = join(import.meta.dirname, '..', '..');

/** Wraps `app` and records each body that it receives. */
function recording(app: RequestListener): RequestListener {
  return (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => keep(request.url ?? '', JSON.parse(Buffer.concat(chunks).toString())));
    app(request, response);
  };
}

const kept = new Map<string, number>();

function keep(url: string, body: { request: { operation: string } }): void {
  const path = url.replace(/\?.*/, '');
  const subject = path.replace('/', '').replace('-crds-wizardofoz-co-v1alpha1', '');
  const base = `${subject}-${body.request.operation.toLowerCase()}`;
  const count = (kept.get(base) ?? 0) + 1;
  kept.set(base, count);
  writeFileSync(join(folder, `${base}-${count}.json`), `${JSON.stringify({ url, body }, undefined, 2)}\n`);
}

mkdirSync(folder, { recursive: true });
for (const name of readdirSync(folder)) rmSync(join(folder, name));

const world = new World();
const log = createLog({ clock: systemClock, format: 'text' });
const plane = await startPlane({ onProgress: (line) => console.error(line) });
try {
  const [port = 0] = await freePorts(1);
  const { certFile, keyFile } = await install(plane, port);
  const certificate = new FileCertificate({ certFile, keyFile, clock: systemClock, log });
  const app = recording(world.app as RequestListener);
  const server = await startAdmissionServer({ app, certificate, host: '127.0.0.1', port, clock: systemClock, log });
  const alice = await plane.kubeconfigFor('alice', ['devs', 'system:masters']);
  const kubectl = async (...args: string[]): Promise<string> => {
    const { stdout, stderr } = await plane.kubectl(args, { kubeconfig: alice, reject: false });
    console.log(`$ kubectl ${args.join(' ').slice(0, 100)}\n${stdout}${stderr}`);
    return stdout + stderr;
  };
  const request = (metadata: string, spec: string): string =>
    `{"apiVersion": "crds.wizardofoz.co/v1alpha1", "kind": "PodAccessRequest", "metadata": {"namespace": "payments", ${metadata}}, "spec": ${spec}}`;
  const create = async (manifest: string, ...more: string[]): Promise<string> => {
    const { stdout, stderr } = await plane.kubectl(['create', '-f', '-', ...more], {
      kubeconfig: alice,
      input: manifest,
      reject: false,
    });
    console.log(`$ kubectl create ${manifest}\n${stdout}${stderr}`);
    return stdout + stderr;
  };

  const patch = (body: string): Promise<string> =>
    kubectl('patch', 'podaccessrequest', '-n', 'payments', 'one', '--type=merge', '-p', body);

  await kubectl('create', 'namespace', 'payments');
  await kubectl('apply', '-f', join(root, 'examples', 'templates.yaml'));
  const name = '"name": "one", "finalizers": ["example.com/stay"]';
  assert.match(
    await create(
      request(
        name,
        '{"templateName": "payments-shell", "requester": {"username": "root", "time": "2020-01-01T00:00:00Z"}}',
      ),
    ),
    /one created/,
  );
  const stored = await kubectl(
    'get',
    'podaccessrequest',
    '-n',
    'payments',
    'one',
    '-o',
    'jsonpath={.metadata.finalizers} {.spec.requester.username}',
  );
  assert.equal(stored, '["access.drawbridge.dev/revoke"] alice');
  assert.match(
    await create(request('"generateName": "debug-"', '{"templateName": "payments-shell", "duration": "9h"}')),
    /debug-[a-z0-9]{10} created/,
  );
  await create(request('"name": "dry"', '{"templateName": "payments-shell"}'), '--dry-run=server');
  assert.match(
    await create(request('"name": "bad"', '{"templateName": "payments-shell", "duration": "x"}')),
    /InvalidDuration/,
  );
  assert.match(await patch('{"spec":{"duration":"2h"}}'), /SpecImmutable|immutable|cannot be changed/);
  await kubectl('label', 'podaccessrequest', '-n', 'payments', 'one', 'team=sre');
  await kubectl('delete', 'podaccessrequest', '-n', 'payments', 'one', '--wait=false');
  assert.match(await patch('{"metadata":{"finalizers":null}}'), /patched/);
  await kubectl('apply', '-f', join(root, 'examples', 'exec-access-request.yaml'));
  await kubectl('run', '-n', 'payments', 'web', '--image=web');
  await kubectl('wait', '-n', 'payments', '--for=condition=Ready', 'pod/web', '--timeout=20s');
  await kubectl('exec', '-n', 'payments', 'web', '--', 'true');
  // The main process is a shell.
  await plane.kubectl(['attach', '-i', '-n', 'payments', 'web'], { kubeconfig: alice, input: 'exit\n' });
  await server.close();
} finally {
  await plane.stop();
}
for (const line of world.lines) console.log(JSON.stringify(line));
console.log(world.connectEvents);
