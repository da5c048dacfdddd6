import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { recordedTemplate } from '../../../sandbox/console-examples.ts';
import type { Terminal } from '../../../sandbox/terminal.ts';
import { podRequest } from '../../support/access-requests.ts';
import { ConsoleStage } from '../../support/console-stage.ts';
import type { ConsoleVisitor } from '../../support/console-visitor.ts';
import { Person } from '../../support/person.ts';

describe('the console and what others wrote', function () {
  this.timeout(60_000);
  let stage: ConsoleStage;

  before(async function () {
    this.timeout(240_000);
    stage = await ConsoleStage.open();
  });
  after(() => stage?.close());
  afterEach(function () {
    return stage.check(this);
  });

  describe('in objects of the cluster', () => {
    const markup = `<img src=x onerror=alert(1)><script>alert(2)</script>`;
    const invisible = '\u202egnp\u202c\u2066a\u2069\u200b\u00ad\u{e0041}';
    const hostile = `${markup}${invisible}`;
    const longest = `INC-7 ${hostile}`.padEnd(512, 'W');
    let mallory: Person;
    let carols: ConsoleVisitor;

    before(async () => {
      const { access } = stage;
      mallory = await Person.of(access.plane, markup, ['devs']);
      await access.apply({
        ...recordedTemplate,
        metadata: { name: 'hostile' },
        spec: {
          ...recordedTemplate.spec,
          accessConfig: { ...recordedTemplate.spec.accessConfig, reason: { minLength: 1, prompt: hostile } },
          controllerTargetMutationConfig: { command: ['sh', '-c', `sleep 86400 # ${hostile}`] },
        },
      });
      await access.templateReady('PodAccessTemplate', 'hostile');
      await access.createOk(mallory, podRequest('from-mallory', { templateName: 'hostile', reason: longest }));
      const request = await access.requestUntil(
        'to wait',
        { kind: 'PodAccessRequest', metadata: { name: 'from-mallory', uid: '' } },
        ({ status }) => status?.approval?.state === 'Pending',
      );
      const involved = { apiVersion: 'crds.wizardofoz.co/v1alpha1', kind: request.kind, namespace: stage.namespace };
      await access.apply({
        apiVersion: 'v1',
        kind: 'Event',
        metadata: { name: 'hostile' },
        involvedObject: { ...involved, name: request.metadata.name, uid: request.metadata.uid },
        reason: markup,
        message: hostile,
        type: 'Normal',
        firstTimestamp: '2026-01-01T00:00:00Z',
        lastTimestamp: '2026-01-01T00:00:00Z',
      });
      carols = await stage.visit(stage.carol, { viewport: { width: 380, height: 800 } });
    });

    /** The page has the text, as text alone, and fits the screen. */
    const isHarmless = async ({ page }: ConsoleVisitor): Promise<void> => {
      await page.getByText('<img src=x onerror=alert(1)>').first().waitFor();
      const { tags, links, html, wide } = await page.evaluate<{
        tags: number;
        links: string[];
        html: string;
        wide: number;
      }>(`({
        tags: document.querySelectorAll('img, svg, iframe, object, embed, base, style, script:not([src="/main.js"])').length,
        links: [...document.querySelectorAll('[href], [src], [action]')].map((one) => one.href ?? one.src ?? one.action),
        html: document.documentElement.outerHTML,
        wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
      })`);
      assert.equal(tags, 0);
      assert.deepEqual(
        links.filter((link) => !/^(http:\/\/127\.0\.0\.1:\d+\/|https:\/\/tickets\.example\/|data:,$)/.test(link)),
        [],
      );
      assert.doesNotMatch(html, /[^\P{Cc}\t\n]|\p{Cf}|\p{Zl}|\p{Zp}/u);
      assert.equal(wide, 0, 'it must not be wider than the screen');
    };

    it('shows an approver no markup, foreign links, or invisible characters', async () => {
      await carols.page.getByRole('link', { name: /To decide/ }).click();
      await isHarmless(carols);
      await carols.page.getByRole('link', { name: 'Decide', exact: true }).first().click();
      await carols.page.getByText('sleep 86400').first().waitFor();
      await isHarmless(carols);
    });

    it('shows none on the page of a template', async () => {
      await carols.goto(`/ask/${stage.namespace}/pod/hostile`);
      await isHarmless(carols);
    });

    it('shows none to their requester', async () => {
      const own = await stage.visit(mallory, { viewport: { width: 380, height: 800 } });
      await own.goto('/mine');
      await isHarmless(own);
    });

    it('never gets a link of another scheme from a template', async () => {
      const { access } = stage;
      const { status } = await access.create(access.plane, {
        ...recordedTemplate,
        metadata: { name: 'script' },
        spec: {
          ...recordedTemplate.spec,
          accessConfig: {
            ...recordedTemplate.spec.accessConfig,
            reason: { pattern: '.*', link: 'javascript:alert({match})' },
          },
        },
      });
      assert.ok(status >= 400, String(status));
    });
  });

  describe('to a terminal', () => {
    const name = 'terminal';
    /** For `printf` of a shell, as are the escapes. */
    const bytes = [
      '<img src=x onerror=alert(1)>',
      '\\033]8;;javascript:alert(1)\\033\\\\script link\\033]8;;\\033\\\\',
      '\\033]8;;https://evil.example/\\007web link\\033]8;;\\007',
      '\\033]0;owned\\007\\033]2;owned\\007\\033]52;c;b3duZWQ=\\007',
      '\\033[6n\\033[c\\033[8;9999;9999t\\033P1$r0m\\033\\\\\\033]1337;File=inline=1:AAAA\\007',
      '\\342\\200\\256backwards\\342\\200\\254\\377\\376\\000\\302\\205\\342\\200\\213',
      '\\033[?1049h in the alternate screen \\033[?1049l\\033#8\\033c',
    ];
    let shell: Terminal;
    let daves: ConsoleVisitor;

    before(async () => {
      await stage.approve(await stage.request(name));
      daves = await stage.visit(stage.dave);
      await daves.goto('/open');
      shell = await stage.enter(name);
    });
    after(() => shell?.kill());

    /** The player shows the last line, and has nothing else to click, keep, or run. */
    const isHarmless = async (player: Page, line: string): Promise<void> => {
      await player.getByText(line).first().waitFor({ timeout: 15_000 });
      const links = 'a[href]:not([download]), img, iframe, script:not([src="/player.js"])';
      assert.equal(await player.locator(links).count(), 0);
      assert.match(await player.title(), /drawbridge$/);
      assert.notEqual(await player.evaluate('navigator.clipboard.readText()'), 'owned');
      assert.doesNotMatch(await player.content(), /[^\P{Cc}\t\n]|\p{Cf}/u);
      const startMs = performance.now();
      await player.evaluate('new Promise((resolve) => requestAnimationFrame(resolve))');
      assert.ok(performance.now() - startMs < 1000, 'the page must answer');
    };

    it('is harmless to who watches', async () => {
      const { page, context } = daves;
      await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: daves.console.origin });
      const watch = page.getByRole('row', { name: new RegExp(name) }).getByRole('link', { name: 'Watch' });
      const [player] = await Promise.all([context.waitForEvent('page'), watch.click()]);
      await stage.journalLine(name, { verdict: 'viewed' });
      for (const one of bytes) shell.write(`printf '${one}\\n'\n`);
      // In one line, and faster than a page can show it.
      shell.write(`head -c 3000000 /dev/zero | tr '\\0' W; echo; yes | head -n 100000; clear; echo "the e"nd\n`);
      await isHarmless(player, 'the end');
      assert.ok(shell.text.includes('\u001b]8;;javascript:') && shell.text.includes('\u202e'));
      await player.close();
    });

    it('is harmless to who plays the recording', async () => {
      const { page, context } = daves;
      shell.write('exit\n');
      assert.equal(await shell.exit(), 0);
      await stage.recorded(name);
      await page.getByRole('link', { name: 'Recordings' }).click();
      await page.getByLabel('Add files').setInputFiles(stage.gateway.process.auditFile);
      const play = page.getByRole('row', { name: new RegExp(name) }).getByRole('link', { name: 'Play' });
      const [player] = await Promise.all([context.waitForEvent('page'), play.click()]);
      await player.getByLabel('Speed').selectOption('16');
      await isHarmless(player, 'the end');
    });
  });
});
