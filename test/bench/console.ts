import type { Page } from 'playwright-core';
import { ConsoleProcess } from '../../sandbox/console-process.ts';
import { until } from '../../sandbox/wait.ts';
import { apiVersionOf } from '../../src/api/object.ts';
import { requestResource } from '../../src/client/access-requests.ts';
import { launchChromium } from '../support/console-visitor.ts';
import { Api, inParallel, now } from './support/api.ts';
import { benchmarkOn, benchPlane } from './support/command.ts';
import { type Figures, median, numberFrom } from './support/figures.ts';

/** A console in a browser, with N requests of its user. No server runs, so the objects stay as they are. */
const count = numberFrom('N', 10_000);
const user = 'bench';
const resource = requestResource('pod');
const url = `/apis/${apiVersionOf(resource)}/namespaces/default/${resource.plural}`;
const keys = 'bench-99';

const plane = await benchPlane();
const api = new Api(plane, user, ['system:masters']);

const requester = { username: user, uid: '', groups: ['devs'], time: new Date().toISOString() };
const create = (name: string): Promise<unknown> =>
  api.call('POST', url, {
    apiVersion: apiVersionOf(resource),
    kind: resource.kind,
    metadata: { name },
    spec: { templateName: 'bench', reason: `INC-${name} bench`, requester },
  });

/** Of the page: notes how long it takes from each key or click until the page is painted. */
const notePaints = `globalThis.paints = [];
  for (const type of ['keydown', 'click'])
    addEventListener(type, ({ timeStamp }) => {
      requestAnimationFrame(() => setTimeout(() => paints.push(performance.now() - timeStamp)));
    }, { capture: true });`;

/** From the input until the page is painted with all that follows from it, ms. */
async function paintedMs(page: Page, input: () => Promise<void>): Promise<number> {
  const before = await page.evaluate<number>('paints.length');
  await input();
  return until('the page to be painted', () => page.evaluate<number | undefined>(`paints[${before}]`), {
    timeoutMs: 10_000,
    everyMs: 10,
  });
}

interface Stage {
  readonly console: ConsoleProcess;
  readonly browser: Awaited<ReturnType<typeof launchChromium>>;
  close(): Promise<void>;
}

await benchmarkOn(
  'console',
  async ({ console, browser }: Stage): Promise<Figures> => {
    const context = await browser.newContext();
    const page = await context.newPage();
    let bytes = 0;
    page.on('response', async (response) => {
      if (!response.url().includes('/api/')) bytes += Number(await response.headerValue('content-length'));
    });
    const startMs = now();
    const took = async (done: Promise<unknown>): Promise<number> => {
      await done;
      return now() - startMs;
    };
    await page.goto(`${console.origin}/mine#${console.token}`, { waitUntil: 'commit' });
    const [firstRowsMs, syncedMs] = await Promise.all([
      took(page.getByRole('article').first().waitFor()),
      took(page.getByText('Live', { exact: true }).waitFor({ timeout: 60_000 })),
    ]);
    await page.getByText(String(count), { exact: true }).waitFor();
    await page.evaluate(notePaints);
    const filter = page.getByRole('searchbox');
    await filter.focus();
    const typed: number[] = [];
    for (const key of keys) typed.push(await paintedMs(page, () => page.keyboard.press(key)));
    await filter.selectText();
    typed.push(await paintedMs(page, () => page.keyboard.press('Delete')));
    const moreMs = await paintedMs(page, () => page.getByRole('button', { name: 'Show more' }).click());
    const name = `changed-${Math.round(now())}`;
    const created = now();
    await create(name);
    await page.locator(`a[href$="/${name}"]`).waitFor();
    const changedMs = now() - created;
    await api.call('DELETE', `${url}/${name}`);
    await context.close();
    return {
      firstRowsMs,
      syncedMs,
      keyP50Ms: median(typed),
      keyMaxMs: Math.max(...typed),
      moreMs,
      changedMs,
      firstPageKb: bytes / 1024,
    };
  },
  {
    rounds: 5,
    async open() {
      await api.warm();
      await inParallel(count, (index) => create(`bench-${index}`));
      const kubeconfig = await plane.kubeconfigFor(user, ['system:masters']);
      const console = await ConsoleProcess.start(plane, kubeconfig, '-n', 'default');
      const browser = await launchChromium();
      const close = async (): Promise<void> => {
        await browser.close();
        await console.stop();
        await api.close();
      };
      return { console, browser, close };
    },
    end: () => plane.stop(),
  },
);
