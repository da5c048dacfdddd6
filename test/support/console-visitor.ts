import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import type { ConsoleProcess } from '../../sandbox/console-process.ts';

export type VisitorOptions = Pick<BrowserContextOptions, 'colorScheme' | 'viewport'>;

/** That of Debian. `flags`: further ones. CI runs as root, for whom chromium has no sandbox. */
export function launchChromium(...flags: readonly string[]): Promise<Browser> {
  const folders = (process.env['PATH'] ?? '').split(':');
  const executablePath = folders.map((folder) => join(folder, 'chromium')).find((path) => existsSync(path));
  if (executablePath === undefined) throw new Error('chromium is not on PATH; on Debian: make chromium');
  return chromium.launch({ executablePath, args: ['--no-sandbox', ...flags] });
}

/** Scripts of the page are texts here: the tests are compiled without the types of a browser. */
const reportViolations = `addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI, sample }) =>
  console.error('CSP: ' + violatedDirective + ' ' + blockedURI + ' ' + sample));`;

/** One person's browser, in which a console is open. */
export class ConsoleVisitor {
  readonly console: ConsoleProcess;
  readonly context: BrowserContext;
  readonly page: Page;
  #problems: string[] = [];

  private constructor(console: ConsoleProcess, context: BrowserContext, page: Page) {
    this.console = console;
    this.context = context;
    this.page = page;
  }

  static async open(browser: Browser, console: ConsoleProcess, options: VisitorOptions = {}): Promise<ConsoleVisitor> {
    const context = await browser.newContext(options);
    await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: console.origin });
    // Chromium does not report every violation in its console.
    await context.addInitScript({ content: reportViolations });
    const visitor = new ConsoleVisitor(console, context, await context.newPage());
    context.on('page', (page) => visitor.#watch(page));
    visitor.#watch(visitor.page);
    visitor.page.setDefaultTimeout(15_000);
    await visitor.page.goto(console.url);
    await visitor.page.getByRole('navigation').waitFor();
    return visitor;
  }

  #watch(page: Page): void {
    page.on('pageerror', (error) => this.#problems.push(String(error)));
    page.on('dialog', (dialog) => {
      this.#problems.push(`a dialog of the browser: ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on('console', (message) => {
      if (message.type() === 'error' || message.type() === 'warning') this.#problems.push(message.text());
    });
  }

  /** Opens a path of the console, as a link from elsewhere does. */
  async goto(path: string): Promise<void> {
    await this.page.goto(`${this.console.origin}${path}`);
    await this.page.getByRole('navigation').waitFor();
  }

  /** Writes screenshots of all open tabs, and what screen readers have. */
  async keep(file: string): Promise<void> {
    for (const [index, page] of this.context.pages().entries()) {
      await page.screenshot({ path: `${file}-${index}.png`, fullPage: true });
      await writeFile(`${file}-${index}.txt`, `${page.url()}\n${await page.locator('body').ariaSnapshot()}\n`);
    }
  }

  /** The errors, warnings, and violations of the CSP since the last call. */
  takeProblems(): string[] {
    const found = this.#problems;
    this.#problems = [];
    return found;
  }
}
