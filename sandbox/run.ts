import { fileURLToPath } from 'node:url';
import { parseGoDuration, toMilliseconds } from '../src/kit/go-duration.ts';
import {
  accessExamples,
  applyAccessExamples,
  commandsToTry,
  namespace,
  type People,
  tellByMail,
} from './access-examples.ts';
import { addressesOf, execNote } from './addresses.ts';
import { DemoClient } from './demo-client.ts';
import { Mailbox } from './mailbox.ts';
import { Narrator } from './narrator.ts';
import { NotifyProcess } from './notify-process.ts';
import { type Plane, startPlane } from './plane.ts';
import { type AuditLine, ServerProcess } from './server-process.ts';
import { until } from './wait.ts';

/**
 * `make run`: the demo of access on a real control plane. Alice requests access with a reason, carol hears of it by mail and approves it for
 * less time, alice uses it and extends it, and it ends on time.
 * With ONCE=1 the demo ends there; otherwise the server runs until Ctrl-C. Exit code 1 if a step failed.
 */
const root = fileURLToPath(new URL('..', import.meta.url));
const asked = process.env['DURATION'] ?? '15s';
const askedSeconds = secondsOf(asked);
/** A word as a shell takes it. */
const quoted = (word: string): string => (/^[\w./=-]+$/.test(word) ? word : `'${word}'`);
/** How long carol approves, and by how much alice extends. */
const [approved, extended] = [`${Math.ceil((askedSeconds * 4) / 5)}s`, `${Math.ceil(askedSeconds / 3)}s`];
const request = 'debug-payments';
const reason = 'INC-42 payments fail since noon';

async function main(): Promise<void> {
  const narrator = new Narrator();
  narrator.title('drawbridge: opens access for a while and closes it on time');
  const plane = await startPlane({
    crds: [`${root}charts/drawbridge/files/crds`],
    onProgress: (line) => console.log(`   ${line}`),
  });
  process.once('SIGINT', () => process.exit(130));
  process.once('SIGTERM', () => process.exit(143));
  const server = await ServerProcess.start(plane, { flags: ['--leader-elect=true'] });
  const { namespace: release } = server.installation;
  const mailbox = await Mailbox.open(plane.authority);
  const notify = await NotifyProcess.start(plane, { namespace: release, secretNamespaces: [] });
  try {
    const people = await story(narrator, plane, server, mailbox);
    if (process.env['ONCE']) return;
    mailbox.onMail = (mail) => narrator.evidence(`\n${mail}`);
    await stayUp(narrator, plane, server, people);
  } catch (error) {
    console.error(`\nthe server's log:\n${await server.log()}`);
    throw error;
  } finally {
    await notify.stop();
    await mailbox.close();
    await server.stop();
    await plane.stop();
  }
}

async function story(narrator: Narrator, plane: Plane, server: ServerProcess, mailbox: Mailbox): Promise<People> {
  const run = async (args: string, options: { kubeconfig?: string; reject?: boolean } = {}): Promise<string> => {
    const result = await plane.kubectl(args.split(' '), options);
    return result.stdout + result.stderr;
  };
  const auditLine = (matches: (line: AuditLine) => boolean): Promise<AuditLine> =>
    until('the audit line', async () => (await server.audit(matches)).at(-1), { timeoutMs: 30_000 });

  narrator.step('A cluster with drawbridge');
  narrator.evidence(
    `Kubernetes at ${plane.server}; webhooks, CRDs, and permissions are installed; the server runs as ${server.installation.serverUser}`,
  );

  narrator.step('A workload, and templates that name the groups that may enter it');
  const people = await applyAccessExamples(plane);
  const { alice, carol } = people;
  narrator.command(`kubectl apply${accessExamples.map((file) => ` -f ${file}`).join('')}`);
  narrator.evidence(await run(`get -n ${namespace} deployments,podaccesstemplates,execaccesstemplates`));

  narrator.step('carol is told about requests by mail');
  await tellByMail(plane, mailbox.address);
  narrator.evidence(await run(`get -n ${namespace} notificationproviders,notificationsubscriptions`));

  const client = (who: keyof People, ...args: string[]): DemoClient => {
    // Flags of the connection come first, because a command may follow --.
    const line = ['-n', namespace, ...args];
    narrator.command(['drawbridge', ...line].map(quoted).join(' '), who);
    return new DemoClient(plane, people[who], line);
  };

  narrator.step('bob of group qa requests access, and is denied');
  narrator.evidence(await client('bob', 'request', 'pod', 'payments-debug', '--reason', reason).ended);
  narrator.audit(await auditLine((line) => line.who.user === 'bob' && line.verdict === 'denied'));

  narrator.step(`alice of group devs requests ${asked}, with a reason; the command waits for approvals`);
  const ask = ['request', 'pod', 'payments-debug', '--name', request, '--for', asked, '--reason', reason];
  const asking = client('alice', ...ask);
  narrator.evidence(await asking.says('waiting for approvals'));
  narrator.audit(await auditLine((line) => line.who.user === 'alice' && line.event === 'admission'));

  narrator.step('carol gets a mail');
  narrator.evidence(await mailbox.mail('alice'));

  narrator.step(`carol of group devs approves ${approved} of it`);
  narrator.evidence(await client('carol', 'pending').ended);
  narrator.evidence(await client('carol', 'approve', request, '--max', approved).ended);
  narrator.audit(await auditLine((line) => line.who.user === 'carol' && line.verdict === 'allowed'));

  narrator.step('The server has created a pod, a Role, and a RoleBinding; the command of alice ends');
  narrator.evidence(await asking.ended);
  narrator.evidence(await run(`get -n ${namespace} pods,roles,rolebindings -l access.drawbridge.dev/request`));
  narrator.audit(await auditLine((line) => line.event === 'grant' && line.verdict === 'granted'));

  narrator.step('alice may enter the pod; carol of the same group may not');
  const pod = (await run(`get -n ${namespace} podaccessrequest/${request} -o jsonpath={.status.podName}`)).trim();
  const canI = (kubeconfig: string): Promise<string> =>
    run(`auth can-i create pods/${pod} --subresource=exec -n ${namespace}`, { kubeconfig, reject: false }).then(
      (text) => text.split('\n')[0] ?? '',
    );
  narrator.evidence(
    `alice: ${await expectAnswer('yes', canI(alice))}   carol: ${await expectAnswer('no', canI(carol))}`,
  );
  narrator.evidence(await client('alice', 'exec', request, '--', 'echo', 'hello from the access pod').ended);
  narrator.audit(await auditLine((line) => line.event === 'exec' && line.who.user === 'alice'));

  narrator.step(`alice extends the access by ${extended}, and carol approves that, too`);
  const extending = client('alice', 'extend', request, '--by', extended, '--reason', 'INC-42 still reading logs');
  await until(
    'the extension to wait for carol',
    async () => (await run(`get -n ${namespace} podaccessrequest/${request} -o jsonpath={.status.extensions}`)) !== '',
    { timeoutMs: 30_000, everyMs: 50 },
  );
  narrator.evidence(await client('carol', 'approve', request).ended);
  narrator.evidence(await extending.ended);
  narrator.audit(await auditLine((line) => line.verdict === 'extended'));

  narrator.evidence(await client('alice', 'list').ended);
  await until(
    'the request to be gone',
    async () =>
      (await plane.kubectl(['get', '-n', namespace, 'podaccessrequest', request], { reject: false })).code !== 0,
    { timeoutMs: 60_000, everyMs: 200 },
  );
  narrator.step('The grant has expired: the server has deleted everything');
  narrator.evidence(`alice: ${await expectAnswer('no', canI(alice))}`);
  narrator.evidence(
    await run(`get -n ${namespace} podaccessrequests,pods,roles,rolebindings -l access.drawbridge.dev/request`),
  );
  const revoked = await auditLine((line) => line.event === 'revocation');
  narrator.audit(revoked);
  narrator.end(
    `Done: access opened for alice by carol’s approval, and closed ${Date.parse(String(revoked['time'])) - Date.parse(String(revoked['expiresAt']))} ms after the deadline.`,
  );
  return people;
}

function secondsOf(duration: string): number {
  const parsed = parseGoDuration(duration);
  if ('error' in parsed) throw new Error(`DURATION ${parsed.error}`);
  return toMilliseconds(parsed.ns) / 1000;
}

async function expectAnswer(wanted: string, answer: Promise<string>): Promise<string> {
  const got = await answer;
  if (got !== wanted) throw new Error(`expected the answer "${wanted}" and got "${got}"`);
  return got;
}

async function stayUp(narrator: Narrator, plane: Plane, server: ServerProcess, people: People): Promise<void> {
  narrator.title('The server keeps running. Try it in another terminal (Ctrl-C here stops everything):');
  narrator.evidence(
    [
      ...commandsToTry(plane, people),
      `drawbridge notify test mail -n ${namespace}   # a mail, which appears here`,
    ].join('\n'),
  );
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
