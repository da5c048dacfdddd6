import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { stripVTControlCharacters } from 'node:util';
import { parseGoDuration, toMilliseconds } from '../src/kit/go-duration.ts';
import { applyAccessExamples, commandsToTry, namespace, type People } from './access-examples.ts';
import { addressesOf, execNote } from './addresses.ts';
import { DemoClient } from './demo-client.ts';
import { type GatewayProcess, startRecordingGateway } from './gateway-process.ts';
import { Narrator } from './narrator.ts';
import { type Plane, startPlane } from './plane.ts';
import { ServerProcess } from './server-process.ts';
import { Terminal } from './terminal.ts';
import { until } from './wait.ts';

/**
 * `make run DEMO=session`: the demo of sessions through the gateway on a real control plane. Alice opens a shell with kubectl, carol
 * watches it, it ends at its deadline, and carol replays and verifies its recording. A warning comes two minutes before the end, so the
 * demo takes a little longer by default; DURATION=30s leaves it out. With ONCE=1 the demo ends there; otherwise the server runs until
 * Ctrl-C. Exit code 1 if a step failed.
 */
const root = fileURLToPath(new URL('..', import.meta.url));
const asked = process.env['DURATION'] ?? '2m15s';
const request = 'fix-payments';
const template = 'payments-recorded';

async function main(): Promise<void> {
  const narrator = new Narrator();
  narrator.title('drawbridge: a shell that an auditor watches, that ends on time, and that can be replayed');
  const plane = await startPlane({
    crds: [`${root}charts/drawbridge/files/crds`],
    onProgress: (line) => console.log(`   ${line}`),
  });
  process.once('SIGINT', () => process.exit(130));
  process.once('SIGTERM', () => process.exit(143));
  const server = await ServerProcess.start(plane, { flags: ['--leader-elect=true'] });
  let gateway: GatewayProcess | undefined;
  try {
    const recordings = join(plane.directory, 'recordings');
    gateway = await startRecordingGateway(plane, server.installation.namespace, recordings);
    const people = await story({ narrator, plane, server, gateway, recordings });
    if (process.env['ONCE']) return;
    await stayUp(narrator, plane, server, people);
  } catch (error) {
    console.error(`\nthe server's log:\n${await server.log()}\nthe gateway's log:\n${await gateway?.log()}`);
    throw error;
  } finally {
    await gateway?.stop();
    await server.stop();
    await plane.stop();
  }
}

interface Stage {
  readonly narrator: Narrator;
  readonly plane: Plane;
  readonly server: ServerProcess;
  readonly gateway: GatewayProcess;
  readonly recordings: string;
}

async function story({ narrator, plane, server, gateway, recordings }: Stage): Promise<People> {
  const env = (kubeconfig: string): NodeJS.ProcessEnv => ({
    PATH: `${dirname(plane.binaries.kubectl)}:${process.env['PATH'] ?? ''}`,
    HOME: plane.directory,
    KUBECONFIG: kubeconfig,
    TERM: 'xterm',
  });
  const run = async (...args: string[]): Promise<string> => (await plane.kubectl(args)).stdout.trim();

  narrator.step('A cluster with drawbridge and its gateway');
  narrator.evidence(await run('get', 'apiservice', 'v1alpha1.gateway.drawbridge.dev'));

  narrator.step('A template sends sessions through the gateway, which records them; carol may watch');
  const people = await applyAccessExamples(plane);
  const { alice, carol } = people;
  for (const document of [recorded, auditor]) await plane.kubectl(['apply', '-f', '-'], { input: document });
  narrator.command('kubectl apply -f recorded.yaml');
  narrator.evidence(recorded);
  await run('wait', '-n', namespace, `execaccesstemplate/${template}`, '--for=jsonpath={.status.ready}=true');
  narrator.command(
    `kubectl create rolebinding -n ${namespace} auditors --clusterrole=drawbridge-session-auditor --user=carol`,
  );

  const client = (who: 'alice' | 'carol', ...args: string[]): DemoClient => {
    const line = ['-n', namespace, ...args];
    narrator.command(['drawbridge', ...line].join(' '), who);
    return new DemoClient(plane, people[who], line);
  };
  narrator.step(`alice requests ${asked}`);
  narrator.evidence(await client('alice', 'request', 'exec', template, '--name', request, '--for', asked).ended);

  narrator.step('alice opens a shell with her kubectl, which tells her that it is recorded');
  const pod = await run('get', '-n', namespace, `ear/${request}`, '-o', 'jsonpath={.status.podName}');
  narrator.command(`eval "$(drawbridge -n ${namespace} use ${request})"`, 'alice');
  narrator.command(`kubectl exec -ti ${pod} -- sh`, 'alice');
  const use = `eval "$(${process.execPath} ${root}dist/client.cjs -n ${namespace} use ${request})"`;
  const shell = new Terminal('bash', ['-c', `${use}; exec kubectl exec -ti ${pod} -- sh`], env(alice));
  await shell.shows(/this session is recorded.*[$#] $/s);
  narrator.evidence(plain(shell.text));

  narrator.step('carol sees who is connected, and watches');
  narrator.evidence(await client('carol', 'sessions', 'list').ended);
  const session = await run('get', '-n', namespace, 'accesssessions', '-o', 'jsonpath={.items[0].metadata.name}');
  const tailing = ['-n', namespace, 'sessions', 'tail', session];
  narrator.command(['drawbridge', ...tailing].join(' '), 'carol');
  const tail = new Terminal(process.execPath, [`${root}dist/client.cjs`, ...tailing], env(carol));
  const line = (verdict: string) =>
    until(
      `the audit line ${verdict}`,
      async () => (await gateway.audit((one) => one['session'] === session && one.verdict === verdict)).at(-1),
      { timeoutMs: 30_000 },
    );
  narrator.audit(await line('viewed'));

  narrator.step('alice works; carol sees each character');
  shell.write('for invoice in 7 8 9; do echo "invoice $invoice: paid"; done\n');
  await tail.shows(/^invoice 9: paid/m);
  narrator.evidence(plain(tail.text));

  if (secondsOf(asked) > 120) {
    await tail.shows(/access ends in 2 minutes/);
    narrator.step('Two minutes before the end, the gateway has warned alice');
    narrator.evidence(lastOf(shell.text));
  }
  const code = await shell.exit();
  narrator.step('Access ends, and with it the shell: kubectl says why, and so does the view of carol');
  narrator.evidence(`alice: ${lastOf(shell.text)} (exit code ${code})`);
  narrator.evidence(`carol: ${await tail.exit().then((exit) => `${lastOf(tail.text)} (exit code ${exit})`)}`);
  if (code !== 1 || !/Expired/.test(tail.text)) throw new Error('the session did not end with its access');
  narrator.audit(await line('ended'));

  narrator.step('carol replays the session');
  // On a terminal, notices come where they were in the session; elsewhere they go to standard error.
  const playing = ['-n', namespace, 'sessions', 'play', session, '--speed', '10'];
  narrator.command(['drawbridge', ...playing].join(' '), 'carol');
  const replay = new Terminal(process.execPath, [`${root}dist/client.cjs`, ...playing], env(carol));
  const replayed = await replay.exit();
  narrator.evidence(plain(replay.text));
  if (replayed !== 0) throw new Error(`the replay ended with exit code ${replayed}`);

  narrator.step('The journal proves that no byte of the recording was changed');
  await until(
    'the recording to be complete',
    async () => (await gateway.audit((one) => one['session'] === session && one['complete'] === true)).length > 0,
    { timeoutMs: 30_000 },
  );
  narrator.command('drawbridge audit verify --recordings recordings/ access.jsonl gateway.jsonl', 'admin');
  const verify = ['audit', 'verify', '--recordings', recordings, server.auditFile, gateway.auditFile];
  // The hashes of a recording are in lines of the journal, and a signed head covers new lines within about 5 s.
  let verified = '';
  await until(
    'signed heads to cover the journals',
    async () => {
      verified = await new DemoClient(plane, plane.adminKubeconfig, verify).ended;
      return !verified.includes('unproven');
    },
    { timeoutMs: 30_000, everyMs: 1000 },
  );
  narrator.evidence(verified);
  if (!/^INTACT/m.test(verified)) throw new Error('the recording was not verified');
  narrator.end('Done: a shell opened through the gateway, watched, ended on time, replayed, and proven.');
  return people;
}

const recorded = `apiVersion: crds.wizardofoz.co/v1alpha1
kind: ExecAccessTemplate
metadata: {name: ${template}, namespace: ${namespace}}
spec:
  accessConfig:
    allowedGroups: [devs]
    session: {via: Gateway, record: Required, idleAfter: 15m}
  controllerTargetRef: {apiVersion: apps/v1, kind: Deployment, name: payments}
`;

const auditor = `apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: auditors, namespace: ${namespace}}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: drawbridge-session-auditor}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: carol}]
`;

/** What a terminal shows, as lines. */
const plain = (text: string): string =>
  stripVTControlCharacters(text)
    .replace(/[^\P{Cc}\t\r\n]/gu, '')
    .split(/\r*\n/)
    .filter((line) => line.trim() !== '')
    .join('\n');

const lastOf = (text: string): string => plain(text).split('\n').at(-1) ?? '';

function secondsOf(duration: string): number {
  const parsed = parseGoDuration(duration);
  if ('error' in parsed) throw new Error(`DURATION ${parsed.error}`);
  return toMilliseconds(parsed.ns) / 1000;
}

async function stayUp(narrator: Narrator, plane: Plane, server: ServerProcess, people: People): Promise<void> {
  narrator.title('The server keeps running. Try it in another terminal (Ctrl-C here stops everything):');
  const lines = [
    ...commandsToTry(plane, people).slice(0, 3),
    `drawbridge request exec ${template} -n ${namespace} --for 30m --exec`,
    `export KUBECONFIG=${people.carol}   # carol may watch`,
    `drawbridge sessions list -n ${namespace}`,
  ];
  narrator.evidence(lines.join('\n'));
  narrator.evidence(addressesOf(plane, server));
  narrator.evidence(execNote(plane));
  await until('the server to end', () => !server.running, { timeoutMs: Number.POSITIVE_INFINITY, everyMs: 500 });
  throw new Error(`the server ended:\n${await server.log()}`);
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    console.error(`\nfailed: ${error instanceof Error ? error.message : String(error)}`);
    process.exit(1);
  },
);
