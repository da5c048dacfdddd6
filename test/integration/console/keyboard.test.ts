import assert from 'node:assert/strict';
import type { Locator, Page } from 'playwright-core';
import { ConsoleStage, reason, template } from '../../support/console-stage.ts';
import type { ConsoleVisitor } from '../../support/console-visitor.ts';

/** More than any page has stops before its content. */
const MAX_TABS = 60;

/** Presses Tab until the element has the focus, which each stop on the way shows. */
async function tabTo(page: Page, target: Locator): Promise<void> {
  await target.waitFor();
  for (let tabs = 0; tabs < MAX_TABS; tabs++) {
    await page.keyboard.press('Tab');
    const shown = await page.evaluate<string>(`(() => {
      // After the last stop, the focus leaves the page.
      if (document.activeElement === document.body) return 'outside';
      const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(document.activeElement);
      return outlineStyle === 'none' || outlineWidth === '0px' ? boxShadow : 'outline';
    })()`);
    assert.notEqual(shown, 'none', `the focus is invisible on ${await focused(page)}`);
    if (await hasFocus(target)) return;
  }
  assert.fail(`Tab does not reach ${target}; the focus is on ${await focused(page)}`);
}

const hasFocus = async (target: Locator): Promise<boolean> =>
  (await target.and(target.page().locator(':focus')).count()) === 1;

const focused = (page: Page): Promise<string> => page.evaluate('document.activeElement.outerHTML.slice(0, 200)');

async function press(page: Page, target: Locator): Promise<void> {
  await tabTo(page, target);
  await page.keyboard.press('Enter');
}

/** Each test continues the last one. No test uses the mouse. */
describe('the console with the keyboard alone', function () {
  this.timeout(60_000);
  this.bail(true);
  let stage: ConsoleStage;
  let alice: ConsoleVisitor;
  let carol: ConsoleVisitor;

  before(async function () {
    this.timeout(240_000);
    stage = await ConsoleStage.open();
    alice = await stage.visit(stage.alice);
    carol = await stage.visit(stage.carol);
  });
  after(() => stage?.close());
  afterEach(function () {
    return stage.check(this);
  });

  it('skips to the page, and asks for access', async () => {
    const { page } = alice;
    await alice.goto('/ask');
    await page.keyboard.press('Tab');
    assert.match(await focused(page), /Skip to the page/);
    await page.keyboard.press('Enter');
    await press(page, page.getByRole('link', { name: template }));
    await page.getByRole('heading', { name: `Ask: ${template}` }).waitFor();
    assert.match(await focused(page), /<h1/);
    await tabTo(page, page.getByLabel('Reason'));
    await page.keyboard.type(reason);
    await page.getByText('You may ask').waitFor();
    await press(page, page.getByRole('button', { name: 'Ask', exact: true }));
    await page.waitForURL(/\/requests\//);
  });

  it('leaves a dialog with Escape, which returns the focus', async () => {
    const { page } = carol;
    await press(page, page.getByRole('navigation').getByRole('link', { name: /To decide/ }));
    await press(page, page.getByRole('link', { name: 'Decide', exact: true }));
    const deny = page.getByRole('button', { name: 'Deny' });
    await press(page, deny);
    await page.getByRole('dialog').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    assert.ok(await hasFocus(deny));
  });

  it('approves with less', async () => {
    const { page } = carol;
    await page.keyboard.press('Shift+Tab');
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog');
    const atMost = dialog.getByLabel('At most');
    await atMost.waitFor();
    if (!(await hasFocus(atMost))) await tabTo(page, atMost);
    await page.keyboard.type('30m');
    await page.keyboard.press('Enter');
    await page.getByText('Approved', { exact: true }).waitFor();
    assert.match(await page.evaluate<string>('document.activeElement.textContent'), /Approved/);
  });

  it('copies the command that enters', async () => {
    const { page } = alice;
    await press(page, page.getByRole('article').getByRole('button', { name: 'Copy' }));
    await page.getByText('Copied').waitFor();
    assert.match(await page.evaluate<string>('navigator.clipboard.readText()'), /^kubectl drawbridge exec /);
  });

  it('gives access back', async () => {
    const { page } = alice;
    await press(page, page.getByRole('button', { name: 'Give back' }));
    const dialog = page.getByRole('dialog');
    await press(page, dialog.getByRole('button', { name: 'Give back' }));
    await dialog.waitFor({ state: 'detached' });
    await page.getByRole('article').getByText('Open', { exact: true }).waitFor({ state: 'detached' });
  });
});
