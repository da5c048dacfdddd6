import assert from 'node:assert/strict';
import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { auditorRights, recordedTemplate } from '../../sandbox/console-examples.ts';
import { ConsoleProcess, kubectlWithPlugin } from '../../sandbox/console-process.ts';
import { userRoles } from '../../sandbox/installation.ts';
import type { AuditLine } from '../../sandbox/server-process.ts';
import { Terminal } from '../../sandbox/terminal.ts';
import { until } from '../../sandbox/wait.ts';
import { AccessGateway } from './access-gateway.ts';
import type { Manifest } from './access-requests.ts';
import { AccessStage, type AccessStageOptions } from './access-stage.ts';
import { ConsoleVisitor, launchChromium, type VisitorOptions } from './console-visitor.ts';
import { Person } from './person.ts';

/** The template of the stage: pods with a peer's approval, whose sessions are recorded. */
export const template: string = recordedTemplate.metadata.name;
/** A reason that the template takes. */
export const reason = 'INC-42 payments fail since noon';

/**
 * The stage of access with a recording gateway and a browser, for people who open consoles: alice requests, carol approves, and dave of
 * group auditors watches.
 */
export class ConsoleStage {
  readonly access: AccessStage;
  readonly gateway: AccessGateway;
  readonly browser: Browser;
  readonly dave: Person;
  readonly #consoles: ConsoleProcess[] = [];
  readonly #visitors: ConsoleVisitor[] = [];

  private constructor(access: AccessStage, gateway: AccessGateway, browser: Browser, dave: Person) {
    this.access = access;
    this.gateway = gateway;
    this.browser = browser;
    this.dave = dave;
  }

  /** `browserFlags`: further ones of chromium. */
  static async open({
    namespace,
    browserFlags = [],
  }: Pick<AccessStageOptions, 'namespace'> & {
    readonly browserFlags?: readonly string[];
  } = {}): Promise<ConsoleStage> {
    const access = await AccessStage.open({ namespace });
    const { plane, server } = access;
    const recordings = mkdtempSync(join(plane.directory, 'recordings-'));
    const gateway = await AccessGateway.open(access, [`--recordings=${recordings}`]);
    const items = [...(await userRoles(plane)), ...auditorRights(server.installation.namespace)];
    await plane.kubectl(['apply', '-f', '-'], { input: JSON.stringify({ kind: 'List', apiVersion: 'v1', items }) });
    await access.apply(recordedTemplate);
    await access.kubectl('create', 'rolebinding', 'approvers', '--clusterrole=drawbridge-approver', '--user=carol');
    await access.templateReady('PodAccessTemplate', template);
    const browser = await launchChromium(...browserFlags);
    return new ConsoleStage(access, gateway, browser, await Person.of(plane, 'dave', ['auditors']));
  }

  get alice(): Person {
    return this.access.alice;
  }

  get carol(): Person {
    return this.access.carol;
  }

  get namespace(): string {
    return this.access.namespace;
  }

  /** The path of the page of one of alice's requests. */
  pathOf(request: string): string {
    return `/requests/${this.namespace}/PodAccessRequest/${request}`;
  }

  /** `flags`: further ones. Dave's shows all namespaces. */
  async console({ name, kubeconfig }: Pick<Person, 'name' | 'kubeconfig'>, ...flags: readonly string[]) {
    const where = name === 'dave' ? ['-A'] : ['-n', this.namespace];
    const started = await ConsoleProcess.start(this.access.plane, kubeconfig, ...where, ...flags);
    this.#consoles.push(started);
    return started;
  }

  /** A person with a browser of their own, in which the console is open. */
  async visit(who: Person | ConsoleProcess, options: VisitorOptions = {}): Promise<ConsoleVisitor> {
    const process = who instanceof ConsoleProcess ? who : await this.console(who);
    const visitor = await ConsoleVisitor.open(this.browser, process, options);
    this.#visitors.push(visitor);
    return visitor;
  }

  /** Creates alice's request, as the administrator would see it. */
  async request(name: string, spec: object = {}): Promise<Manifest> {
    const manifest: Manifest = {
      apiVersion: 'crds.wizardofoz.co/v1alpha1',
      kind: 'PodAccessRequest',
      metadata: { name },
      spec: { templateName: template, reason, ...spec },
    };
    await this.access.createOk(this.alice, manifest);
    return manifest;
  }

  /** Carol approves it. Resolves once access is open. */
  async approve(request: Manifest): Promise<void> {
    const { status, body } = await this.access.vote(this.carol, request);
    assert.equal(status, 201, JSON.stringify(body));
    await this.access.ready({ kind: request.kind, metadata: { name: String(request.metadata.name), uid: '' } });
  }

  /** Alice's shell in the pod of her request, once it shows its prompt. `command`: default, that of the client. */
  async enter(request: string, command = `kubectl drawbridge exec ${request} -n ${this.namespace}`): Promise<Terminal> {
    const { plane } = this.access;
    const shell = new Terminal('bash', ['-c', command], {
      PATH: `${await kubectlWithPlugin(plane)}:${process.env['PATH']}`,
      HOME: plane.directory,
      KUBECONFIG: this.alice.kubeconfig,
      TERM: 'xterm',
    });
    await shell.shows(/[$#] $/);
    return shell;
  }

  /** Resolves with the first line of the gateway's journal about the request that has the fields. */
  journalLine(request: string, fields: Readonly<Record<string, unknown>>): Promise<AuditLine> {
    const wanted = Object.entries({ request, ...fields });
    const isIt = (line: AuditLine): boolean => wanted.every(([key, value]) => line[key] === value);
    const what = `a line of the gateway about ${request}: ${JSON.stringify(fields)}`;
    return until(what, async () => (await this.gateway.process.audit(isIt))[0], { timeoutMs: 30_000 });
  }

  /** Resolves with the name of the request's session once its recording is complete. */
  async recorded(request: string): Promise<string> {
    return String((await this.journalLine(request, { complete: true }))['session']);
  }

  /** What went wrong in the pages since the last call, such as a violation of the CSP. */
  takeProblems(): string[] {
    return this.#visitors.flatMap((visitor) => visitor.takeProblems());
  }

  /** For `afterEach`: no page may have had another problem. Keeps what the pages of a failed test show. */
  async check({ currentTest: test }: Mocha.Context, expected?: RegExp): Promise<void> {
    if (test?.isFailed()) {
      const folder = `dist/console-failures/${test.fullTitle().replaceAll(/\W+/g, '-').slice(0, 150)}`;
      await Promise.all(this.#visitors.map((visitor, index) => visitor.keep(`${folder}-${index}`)));
    }
    const problems = this.takeProblems().filter((problem) => !expected?.test(problem));
    assert.deepEqual(problems, []);
  }

  async close(): Promise<void> {
    await this.browser.close();
    await Promise.all(this.#consoles.map((console) => console.stop()));
    await this.gateway.close();
    const names = auditorRights('').map(({ kind, metadata: { name } }) => `${kind.toLowerCase()}/${name}`);
    const { namespace } = this.access.server.installation;
    await this.access.plane.kubectl(['delete', '-n', namespace, '--ignore-not-found', ...names]);
    await this.access.close();
  }
}
