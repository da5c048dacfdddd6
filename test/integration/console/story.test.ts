import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import type { Terminal } from '../../../sandbox/terminal.ts';
import { until } from '../../../sandbox/wait.ts';
import { conditionOf, type StoredRequest } from '../../support/access-requests.ts';
import { ConsoleStage, reason, template } from '../../support/console-stage.ts';
import type { ConsoleVisitor } from '../../support/console-visitor.ts';

/** How late a page may show what the cluster has. */
const LATE_MS = 1000;

/** Three people with a browser each, and one request from its beginning to the replay of its session. Each test continues the last one. */
describe('a request in the consoles of three people', function () {
  this.timeout(90_000);
  this.bail(true);
  let stage: ConsoleStage;
  let alice: ConsoleVisitor;
  let carol: ConsoleVisitor;
  let dave: ConsoleVisitor;
  let shell: Terminal;
  let name: string;
  let player: Page;

  before(async function () {
    this.timeout(240_000);
    stage = await ConsoleStage.open();
    alice = await stage.visit(stage.alice);
    carol = await stage.visit(stage.carol);
    dave = await stage.visit(stage.dave);
  });
  after(async () => {
    shell?.kill();
    await stage?.close();
  });
  afterEach(function () {
    return stage.check(this);
  });

  const chip = (visitor: ConsoleVisitor, state: string) =>
    visitor.page.getByRole('article').getByText(state, { exact: true });
  /** The request once it matches, and when the test saw that. */
  const inCluster = async (matches: (request: StoredRequest) => boolean): Promise<number> => {
    await stage.access.requestUntil(
      'to be as the page shows',
      { kind: 'PodAccessRequest', metadata: { name, uid: '' } },
      matches,
    );
    return performance.now();
  };
  const inTime = async (cluster: Promise<number>, ...pages: readonly Promise<unknown>[]): Promise<void> => {
    const shown = await Promise.all(pages.map((page) => page.then(() => performance.now())));
    const changed = await cluster;
    for (const at of shown) assert.ok(at - changed < LATE_MS, `the page shows it ${Math.round(at - changed)} ms later`);
  };

  it('tells alice while she types whether she may ask, and who can approve', async () => {
    const { page } = alice;
    await page.getByRole('link', { name: 'Ask', exact: true }).click();
    await page.getByRole('link', { name: template }).click();
    await page.getByText('Not yet').waitFor();
    await page.getByLabel('Reason').fill('because');
    await page
      .getByLabel('Rules')
      .getByText(/the server would deny it/)
      .waitFor();
    await page.getByLabel('Reason').fill(reason);
    await page.getByText('You may ask').waitFor();
    await page.getByText('peer: 1 of groups devs or sre').waitFor();
  });

  it('lets alice ask, and tells carol', async () => {
    const { page } = alice;
    await page.getByLabel('How long').fill('1h');
    await page.getByRole('button', { name: 'Ask', exact: true }).click();
    await page.waitForURL(/\/requests\//);
    name = new URL(page.url()).pathname.split('/').at(-1) ?? '';
    await inTime(
      inCluster(({ status }) => status?.approval?.state === 'Pending'),
      chip(alice, 'Waiting').waitFor(),
      carol.page.getByRole('navigation').getByText('1', { exact: true }).waitFor(),
    );
  });

  it('shows carol what she decides about, and lets her approve less', async () => {
    const { page } = carol;
    await page.getByRole('link', { name: /To decide/ }).click();
    const row = page.getByRole('row', { name: /alice/ });
    await row.getByText(reason).waitFor();
    assert.equal(
      await row.getByRole('link', { name: /tickets/ }).getAttribute('href'),
      'https://tickets.example/INC-42',
    );
    await row.getByRole('link', { name: 'Decide', exact: true }).click();
    await page.getByRole('heading', { name }).waitFor();
    await page.getByText('sleep 86400').first().waitFor();
    await page.getByRole('button', { name: 'Approve', exact: true }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('At most').fill('30m');
    await dialog.getByRole('button', { name: 'Approve', exact: true }).click();
    await inTime(
      inCluster((request) => conditionOf(request, 'Ready')?.status === 'True' || request.status?.ready === true),
      chip(alice, 'Open').waitFor(),
      chip(carol, 'Open').waitFor(),
    );
    await alice.page
      .getByText(/^(30m|29m\d+s)$/)
      .first()
      .waitFor();
  });

  it('gives alice the command that enters the pod, through the gateway', async () => {
    const { page } = alice;
    await page.getByRole('article').getByRole('button', { name: 'Copy' }).click();
    const copied = String(await page.evaluate('navigator.clipboard.readText()'));
    shell = await stage.enter(name, copied);
    await shell.shows(/this session is recorded.*[$#] $/s);
    shell.write('echo "first $((40+2))"\n');
    await shell.shows(/^first 42/m);
  });

  it('lets alice extend', async () => {
    const { page } = alice;
    await page.getByRole('button', { name: 'Extend' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('How much longer').fill('15m');
    await dialog.getByLabel('Reason').fill('INC-42 still reading logs');
    await dialog.getByRole('button', { name: 'Extend' }).click();
    await inTime(
      inCluster(({ status }) => status?.extensions?.[0]?.state === 'Granted'),
      page
        .getByText(/^4[45]m(\d+s)?$/)
        .first()
        .waitFor(),
    );
  });

  it('shows dave the session while alice types', async () => {
    const { page, context } = dave;
    await page.getByRole('link', { name: 'Open now' }).click();
    const row = page.getByRole('row', { name: /alice.*exec -t/ });
    const [opened] = await Promise.all([
      context.waitForEvent('page'),
      row.getByRole('link', { name: 'Watch' }).click(),
    ]);
    player = opened;
    await player.getByRole('heading', { name: 'Live session' }).waitFor();
    await stage.journalLine(name, { verdict: 'viewed' });
    shell.write('echo "second $((40+3))"\n');
    await shell.shows(/^second 43/m);
    const typed = performance.now();
    await player.getByText('second 43').waitFor();
    assert.ok(performance.now() - typed < LATE_MS, `it shows what alice sees ${performance.now() - typed} ms later`);
  });

  it('lets carol revoke, which ends the session for all', async () => {
    const { page } = carol;
    await page.getByRole('button', { name: 'Revoke' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Reason').fill('INC-42 is over');
    await dialog.getByRole('button', { name: 'Revoke' }).click();
    assert.equal(await shell.exit(), 1);
    await inTime(
      Promise.resolve(performance.now()),
      chip(alice, 'Open').waitFor({ state: 'detached' }),
      player
        .getByRole('status')
        .filter({ hasText: /revoked/i })
        .waitFor(),
      dave.page.getByText('No one has access here.').waitFor(),
    );
    await player.close();
  });

  it('lets dave find the session in the journal, and play it', async () => {
    const { page, context } = dave;
    await stage.recorded(name);
    await page.getByRole('link', { name: 'Recordings' }).click();
    const { access, gateway } = stage;
    await page.getByLabel('Add files').setInputFiles([access.server.auditFile, gateway.process.auditFile]);
    const row = page.getByRole('row', { name: /alice/ });
    const [opened] = await Promise.all([context.waitForEvent('page'), row.getByRole('link', { name: 'Play' }).click()]);
    await opened.getByLabel('Speed').selectOption('16');
    await opened.getByText('second 43').waitFor();
    const [download] = await Promise.all([
      opened.waitForEvent('download'),
      opened.getByRole('link', { name: 'Download' }).click(),
    ]);
    assert.match(await readFile(await download.path(), 'utf8'), /second 43/);
    await opened.close();
  });

  it('lets dave verify the recording, and the journal', async () => {
    const { page } = dave;
    const { access, gateway } = stage;
    // A signed head covers new lines within about 5 s.
    const isProven = async (): Promise<boolean> => {
      await page.getByRole('button', { name: 'Forget all' }).click();
      await page.getByText('add its files').waitFor();
      await page.getByLabel('Add files').setInputFiles([access.server.auditFile, gateway.process.auditFile]);
      await page.getByRole('row', { name: /alice/ }).getByRole('button', { name: 'Verify' }).click();
      const dialog = page.getByRole('dialog');
      const verdict = (await dialog.locator('.note strong').textContent()) ?? '';
      await dialog.getByRole('button', { name: 'Close' }).click();
      return /^INTACT/.test(verdict) && !verdict.includes('unproven');
    };
    await until('signed heads to cover the journals', isProven, { timeoutMs: 30_000, everyMs: 1000 });
    await page.getByRole('link', { name: 'Audit' }).click();
    await page.getByRole('button', { name: 'Verify' }).click();
    await page.getByText(/^INTACT/).waitFor();
    const grant = page.getByRole('table', { name: /Grants/ }).getByRole('row', { name: new RegExp(name) });
    await grant.getByText('carol').first().waitFor();
    await grant.getByText(reason).waitFor();
  });
});
