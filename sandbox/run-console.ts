import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { namespace, tellByMail } from './access-examples.ts';
import { addressesOf, execNote } from './addresses.ts';
import { applyConsoleExamples, recordedTemplate } from './console-examples.ts';
import { ConsoleProcess, kubectlWithPlugin } from './console-process.ts';
import { type GatewayProcess, startRecordingGateway } from './gateway-process.ts';
import { Mailbox } from './mailbox.ts';
import { Narrator } from './narrator.ts';
import { NotifyProcess } from './notify-process.ts';
import { type Plane, startPlane } from './plane.ts';
import { ServerProcess } from './server-process.ts';
import { until } from './wait.ts';

/**
 * `make run DEMO=console`: the consoles of three people on a real control plane, with a story to click through. With ONCE=1 the demo ends
 * once each console has answered; otherwise all runs until Ctrl-C. Exit code 1 if a step failed.
 */
const root = fileURLToPath(new URL('..', import.meta.url));

interface Running {
  readonly plane: Plane;
  readonly server: ServerProcess;
  readonly gateway: GatewayProcess;
  readonly mailbox: Mailbox;
}

async function main(): Promise<void> {
  const narrator = new Narrator();
  narrator.title('drawbridge: the consoles of three people');
  const plane = await startPlane({
    crds: [`${root}charts/drawbridge/files/crds`],
    onProgress: (line) => console.log(`   ${line}`),
  });
  process.once('SIGINT', () => process.exit(130));
  process.once('SIGTERM', () => process.exit(143));
  const server = await ServerProcess.start(plane, { flags: ['--leader-elect=true'] });
  const { namespace: release } = server.installation;
  const gateway = await startRecordingGateway(plane, release, join(plane.directory, 'recordings'));
  const notify = await NotifyProcess.start(plane, { namespace: release, secretNamespaces: [] });
  const mailbox = await Mailbox.open(plane.authority);
  const consoles: ConsoleProcess[] = [];
  try {
    await story(narrator, { plane, server, gateway, mailbox }, consoles);
    if (process.env['ONCE']) return;
    await until('a program to end', () => [server, gateway, notify, ...consoles].some(({ running }) => !running), {
      timeoutMs: Number.POSITIVE_INFINITY,
      everyMs: 500,
    });
    throw new Error(`a program ended:\n${consoles.map(({ output }) => output).join('')}`);
  } catch (error) {
    console.error(`\nthe server's log:\n${await server.log()}\nthe gateway's log:\n${await gateway.log()}`);
    throw error;
  } finally {
    await Promise.all([...consoles, notify, gateway, server].map((program) => program.stop()));
    await mailbox.close();
    await plane.stop();
  }
}

async function story(narrator: Narrator, stage: Running, consoles: ConsoleProcess[]): Promise<void> {
  const { plane, server, gateway, mailbox } = stage;
  narrator.step('A cluster with drawbridge, its gateway, and a template whose sessions are recorded');
  const people = await applyConsoleExamples(plane, server.installation.namespace);
  narrator.evidence((await plane.kubectl(['get', '-n', namespace, 'podaccesstemplates,execaccesstemplates'])).stdout);

  narrator.step('alice of group devs, carol of group devs, who may approve, and the auditor dave open their consoles');
  const urls: string[] = [];
  for (const [name, kubeconfig] of Object.entries(people)) {
    const where = name === 'dave' ? ['-A'] : ['-n', namespace];
    narrator.command(`kubectl drawbridge console ${where.join(' ')}`, name);
    const console = await ConsoleProcess.start(plane, kubeconfig, ...where);
    consoles.push(console);
    const page = await fetch(console.origin);
    if (!page.ok || !(await page.text()).includes('<title>')) throw new Error(`the console of ${name} does not answer`);
    urls.push(`${name.padEnd(8)}${console.url}`);
  }

  narrator.step('carol is told about requests by mail, with a link to her console');
  await tellByMail(plane, mailbox.address, consoles[1]?.origin);
  mailbox.onMail = (mail) => narrator.evidence(`\n${mail}`);

  narrator.title('The consoles run. Open each in a tab of your browser (Ctrl-C here stops everything):');
  narrator.evidence(urls.join('\n'));
  narrator.title('A story to click through:');
  narrator.evidence(
    [
      `1. alice, Ask: choose ${recordedTemplate.metadata.name}, give the reason "INC-42 payments fail since noon", and request it.`,
      '2. carol, To decide: read what it opens, and approve 30 minutes of it. The link in her mail leads to the same page.',
      '3. alice, Mine: copy the command that enters, and run it in another terminal, after',
      `   export KUBECONFIG=${people.alice} PATH=${await kubectlWithPlugin(plane)}:$PATH`,
      '4. dave, Open now: watch her session while she types.',
      '5. alice, Mine: extend it; then give it back. Her shell ends.',
      '6. dave, Audit: add the files of the journal (below). Recordings: play the session, and verify it.',
    ].join('\n'),
  );
  narrator.title('Addresses:');
  narrator.evidence(
    Object.entries(people)
      .map(([name, path]) => `${`kubeconfig of ${name}`.padEnd(33)}${path}`)
      .join('\n'),
  );
  narrator.evidence(`${'journal of the gateway'.padEnd(33)}${gateway.auditFile}`);
  narrator.evidence(addressesOf(plane, server));
  narrator.evidence(execNote(plane));
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    console.error(`\nfailed: ${error instanceof Error ? error.message : String(error)}`);
    process.exit(1);
  },
);
