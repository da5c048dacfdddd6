import assert from 'node:assert/strict';
import type { FaultProxy } from '../../../sandbox/fault-proxy.ts';
import { ConsoleStage, reason, template } from '../../support/console-stage.ts';
import type { ConsoleVisitor } from '../../support/console-visitor.ts';

describe('the console on a weak connection', function () {
  this.timeout(90_000);
  let stage: ConsoleStage;

  before(async function () {
    this.timeout(240_000);
    stage = await ConsoleStage.open();
    await stage.request('first');
  });
  after(() => stage?.close());
  afterEach(function () {
    return stage.check(this, /^Failed to load resource: net::ERR_|status of (401|502)/);
  });

  const card = ({ page }: ConsoleVisitor, name: string) =>
    page.getByRole('article').filter({ has: page.locator(`a[href$="/${name}"]`) });
  const status = ({ page }: ConsoleVisitor, text: string) => page.getByRole('banner').getByText(text, { exact: true });

  describe('that is slow', () => {
    it('loads, shows changes, and checks what a person types', async () => {
      const visitor = await stage.visit(stage.alice);
      const { context, page } = visitor;
      const devtools = await context.newCDPSession(page);
      await devtools.send('Network.enable');
      const [latency, bytes] = [400, 50_000];
      await devtools.send('Network.emulateNetworkConditions', {
        offline: false,
        latency,
        downloadThroughput: bytes,
        uploadThroughput: bytes,
      });
      await visitor.goto('/mine');
      await card(visitor, 'first').waitFor();
      await stage.request('slow');
      await card(visitor, 'slow').waitFor({ timeout: 5000 });
      await page.getByRole('link', { name: 'Ask', exact: true }).click();
      await page.getByRole('link', { name: template }).click();
      await page.getByLabel('Reason').pressSequentially(reason, { delay: 20 });
      await page.getByText('You may ask').waitFor();
      await context.close();
    });
  });

  describe('to the API server', () => {
    let proxy: FaultProxy;
    let visitor: ConsoleVisitor;

    before(async () => {
      const { plane } = stage.access;
      proxy = await plane.proxy();
      const kubeconfig = await plane.kubeconfigFor('alice', ['devs'], { server: proxy.server });
      visitor = await stage.visit(await stage.console({ name: 'alice', kubeconfig }));
      await visitor.goto('/mine');
      await status(visitor, 'Live').waitFor();
    });
    after(() => visitor?.context.close());

    it('says that what it shows may be old', async () => {
      proxy.refuse();
      proxy.resetAll();
      await visitor.page.getByRole('alert').filter({ hasText: 'may be old' }).waitFor();
      await status(visitor, 'Connection lost').waitFor();
      await card(visitor, 'first').waitFor();
    });

    it('says why a command failed', async () => {
      await card(visitor, 'first').getByRole('button', { name: 'Withdraw' }).click();
      const dialog = visitor.page.getByRole('dialog');
      await dialog.getByRole('button', { name: 'Withdraw' }).click();
      await dialog
        .getByRole('alert')
        .getByText(/cannot|refused|connect/i)
        .first()
        .waitFor({ timeout: 30_000 });
      await dialog.getByRole('button', { name: 'Cancel' }).click();
    });

    it('shows what has changed once the API server is back', async () => {
      await stage.request('meanwhile');
      await proxy.pass();
      await card(visitor, 'meanwhile').waitFor({ timeout: 30_000 });
      await status(visitor, 'Live').waitFor();
      await visitor.page.getByRole('alert').waitFor({ state: 'detached' });
    });
  });

  describe('to a console that has ended', () => {
    it('says so, and how to start it again', async () => {
      const first = await stage.console(stage.alice);
      const visitor = await stage.visit(first);
      await status(visitor, 'Live').waitFor();
      await first.stop();
      await status(visitor, 'Connection lost').waitFor();
      await visitor.page.getByRole('alert').filter({ hasText: 'start it again in a terminal' }).waitFor();
      const { port } = new URL(first.origin);
      const second = await stage.console(stage.alice, '--port', port);
      await status(visitor, 'Console ended').waitFor();
      const other = await visitor.context.newPage();
      await other.goto(second.url);
      await visitor.goto('/mine');
      await status(visitor, 'Live').waitFor();
      await card(visitor, 'first').waitFor();
      assert.equal(await second.stop(), 0);
    });
  });
});
