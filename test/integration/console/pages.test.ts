import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';
import type { ConsoleProcess } from '../../../sandbox/console-process.ts';
import type { Terminal } from '../../../sandbox/terminal.ts';
import { removeScenery, setScenery } from '../../support/console-scenery.ts';
import { ConsoleStage, template } from '../../support/console-stage.ts';
import type { ConsoleVisitor } from '../../support/console-visitor.ts';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
/** Px: of a phone, a laptop, and a desktop. */
const screens = [
  [380, 720],
  [1280, 800],
  [1920, 1080],
] as const;
const folder = 'dist/console-screenshots';
/** With SCREENSHOTS=1, the images of the documents are written anew: those of these scenes. */
const documented: Readonly<Record<string, string>> = {
  'ask-light-1280': 'console-ask',
  'request-light-1280': 'console-request',
  'open-light-1280': 'console-open',
};

type Who = 'alice' | 'carol' | 'dave' | 'admin';

interface Scene {
  readonly name: string;
  readonly who: Who;
  readonly path: string;
  /** Resolves once the page has what it shows. */
  readonly ready: (page: Page) => Promise<unknown>;
}

describe('each page of the console', function () {
  this.timeout(90_000);
  let stage: ConsoleStage;
  let consoles: Readonly<Record<Who, ConsoleProcess>>;
  let open: Terminal;
  let recording: string;

  before(async function () {
    this.timeout(300_000);
    stage = await ConsoleStage.open({ namespace: process.env['SCREENSHOTS'] ? 'payments' : undefined });
    const { access } = stage;
    await setScenery(access.plane, stage.namespace);
    const [denied, played, fix] = await Promise.all(
      ['clean-up', 'read-logs', 'fix-payments'].map((name) => stage.request(name)),
    );
    assert.ok(denied && played && fix);
    await access.vote(stage.carol, denied, { decision: 'Deny', reason: 'wait for the next window' });
    await stage.approve(played);
    const shell = await stage.enter('read-logs');
    shell.write(
      'for invoice in 7 8 9; do printf "\\033[32minvoice $invoice:\\033[0m paid\\n"; sleep 0.2; done; exit\n',
    );
    await shell.exit();
    recording = await stage.recorded('read-logs');
    await access.plane.kubectl(['delete', '-n', stage.namespace, 'podaccessrequest/read-logs']);
    await stage.approve(fix);
    open = await stage.enter('fix-payments');
    await stage.request('debug-cart', { reason: 'INC-57 carts lose their vouchers', duration: '2h' });
    const admin = { name: 'admin', kubeconfig: access.plane.adminKubeconfig };
    consoles = {
      alice: await stage.console(stage.alice),
      carol: await stage.console(stage.carol),
      dave: await stage.console(stage.dave),
      admin: await stage.console(admin),
    };
    const journal = await stage.visit(consoles.dave);
    await journal.goto('/audit');
    await journal.page
      .getByLabel('Add files')
      .setInputFiles([access.server.auditFile, stage.gateway.process.auditFile]);
    await journal.page.getByRole('heading', { name: 'Who entered which pod' }).waitFor();
    await journal.context.close();
  });
  after(async () => {
    open?.kill();
    if (stage) await removeScenery(stage.access.plane);
    await stage?.close();
  });
  afterEach(function () {
    return stage.check(this, /status of 404/);
  });

  const row = (text: string) => (page: Page) => page.getByRole('row').filter({ hasText: text }).first().waitFor();
  const text = (found: string) => (page: Page) => page.getByText(found).first().waitFor();
  const scenes: readonly Scene[] = [
    { name: 'templates', who: 'alice', path: '/ask', ready: row(template) },
    {
      name: 'ask',
      who: 'alice',
      path: `/ask/NAMESPACE/pod/${template}`,
      ready: async (page) => {
        await page.getByLabel('Reason').fill('INC-42 payments fail since noon');
        await page.getByText('You may ask').waitFor();
        await page.getByText('peer: 1 of groups devs or sre').waitFor();
      },
    },
    { name: 'mine', who: 'alice', path: '/mine', ready: text('kubectl drawbridge exec') },
    {
      name: 'own-request',
      who: 'alice',
      path: '/requests/NAMESPACE/PodAccessRequest/fix-payments',
      ready: text('What happened'),
    },
    { name: 'decide', who: 'carol', path: '/decide', ready: row('INC-57') },
    {
      name: 'request',
      who: 'carol',
      path: '/requests/NAMESPACE/PodAccessRequest/debug-cart',
      ready: text('What it opens'),
    },
    {
      name: 'approve',
      who: 'carol',
      path: '/requests/NAMESPACE/PodAccessRequest/debug-cart',
      ready: async (page) => {
        await page.getByRole('button', { name: 'Approve' }).click();
        await page.getByRole('dialog').waitFor();
      },
    },
    { name: 'open', who: 'dave', path: '/open', ready: row('exec -t') },
    { name: 'recordings', who: 'dave', path: '/recordings', ready: row('read-logs') },
    {
      name: 'recording',
      who: 'dave',
      path: '/player?from=recordings&namespace=NAMESPACE&name=RECORDING',
      ready: async (page) => {
        await page.getByRole('button', { name: 'Show' }).click();
        await page.getByText('invoice 9').waitFor();
      },
    },
    { name: 'audit', who: 'dave', path: '/audit', ready: row('carol') },
    { name: 'bindings', who: 'admin', path: '/bindings', ready: row('Databases of the platform team') },
    {
      name: 'inventory',
      who: 'admin',
      path: '/inventory',
      ready: async (page) => {
        await page.getByRole('button', { name: 'Show components of orders' }).click();
        await page.getByRole('cell', { name: 'proxy', exact: true }).waitFor();
      },
    },
    { name: 'health', who: 'admin', path: '/health', ready: (page) => page.getByRole('table').waitFor() },
    {
      name: 'unknown',
      who: 'alice',
      path: '/requests/NAMESPACE/PodAccessRequest/none',
      ready: (page) => page.getByRole('alert').waitFor(),
    },
  ];

  const visitors = new Map<Who, Promise<ConsoleVisitor>>();
  const visitorOf = (who: Who): Promise<ConsoleVisitor> => {
    const found = visitors.get(who) ?? stage.visit(consoles[who]);
    visitors.set(who, found);
    return found;
  };

  for (const { name, who, path, ready } of scenes)
    it(`is accessible, and fits every screen: ${name}`, async () => {
      const { page, console } = await visitorOf(who);
      await page.goto(console.origin + path.replace('NAMESPACE', stage.namespace).replace('RECORDING', recording));
      await ready(page);
      for (const [width, height] of screens) {
        await page.setViewportSize({ width, height });
        const tooWide = 'document.documentElement.scrollWidth - document.documentElement.clientWidth';
        assert.equal(await page.evaluate(tooWide), 0, `it is too wide for ${width} px`);
        for (const colorScheme of ['light', 'dark'] as const) {
          await page.emulateMedia({ colorScheme });
          const picture = `${name}-${colorScheme}-${width}`;
          await page.screenshot({ path: `${folder}/${picture}.png`, fullPage: true });
          if (process.env['SCREENSHOTS'] && documented[picture])
            await page.screenshot({ path: `docs/images/${documented[picture]}.png` });
          // On other screens, the colors are the same.
          if (width === 1280 || (width === 380 && colorScheme === 'light'))
            assert.deepEqual(await violations(page), []);
        }
      }
    });
});

/** What axe finds, in lines; also where it cannot tell the contrast because of a gradient. */
async function violations(page: Page): Promise<string[]> {
  await page.evaluate(axe);
  // That of the body only separates the bar from the page.
  return page.evaluate(`(async () => {
    document.body.style.backgroundImage = 'none';
    const { violations, incomplete } = await axe.run({ runOnly: ${JSON.stringify(tags)} });
    document.body.style.backgroundImage = '';
    const isUnknown = ({ any }) => any.some(({ data }) => data?.messageKey === 'bgGradient');
    const unknown = incomplete.filter(({ id }) => id === 'color-contrast')
      .map((rule) => ({ ...rule, nodes: rule.nodes.filter(isUnknown) }));
    return [...violations, ...unknown].flatMap(({ id, help, nodes }) => nodes.map(({ html, any }) =>
      [id, help, html.slice(0, 200), ...any.map(({ message }) => message)].join('; ')));
  })()`);
}
