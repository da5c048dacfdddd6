import './main.css';
import { type ComponentType, render } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { paths, type RequestRow, type RunResult, type Start } from '../wire.ts';
import { type CallError, call, connect, hasToken } from './api.ts';
import { type App, AppContext, useApp } from './app.ts';
import { Line, Messages } from './commands.tsx';
import { type Live, useLive } from './live.ts';
import { Ask } from './pages/ask.tsx';
import { Audit } from './pages/audit.tsx';
import { Bindings } from './pages/bindings.tsx';
import { Decide } from './pages/decide.tsx';
import { Health } from './pages/health.tsx';
import { Inventory } from './pages/inventory.tsx';
import { Mine } from './pages/mine.tsx';
import { Open } from './pages/open.tsx';
import { Recordings } from './pages/recordings.tsx';
import { RequestDetails } from './pages/request.tsx';
import { after, nowMs, setServerTime } from './time.ts';
import { Alert, Button, Chip, Go } from './ui.tsx';

/** Each also has the paths below its own. */
const pages: readonly (readonly [path: string, title: string, page: ComponentType])[] = [
  ['/ask', 'Ask', Ask],
  ['/mine', 'Mine', Mine],
  ['/decide', 'To decide', Decide],
  ['/open', 'Open now', Open],
  ['/recordings', 'Recordings', Recordings],
  ['/audit', 'Audit', Audit],
  ['/bindings', 'Bindings', Bindings],
  ['/inventory', 'Inventory', Inventory],
  ['/health', 'Health', Health],
];

const isAt = (path: string, page: string): boolean => path === page || path.startsWith(`${page}/`);

type Said = Readonly<{ text: string; result: RunResult | undefined }>;

function Console() {
  const [start, setStart] = useState<Start>();
  const [problem, setProblem] = useState<CallError>();
  const [path, setPath] = useState(location.pathname);
  const [said, setSaid] = useState<Said>();
  const [namespace, setNamespace] = useState<string>();
  const live = useLive(namespace, start !== undefined);
  const lists = useMemo(() => listsOf(live.requests, start?.user), [live.requests, start]);
  const first = useRef(true);
  const show = (to: string): void => {
    setPath(to);
    setSaid(undefined);
  };
  useEffect(() => {
    addEventListener('popstate', () => show(location.pathname));
    if (!hasToken()) return;
    const begin = async (): Promise<void> => {
      try {
        const found = await connect();
        setServerTime(found.nowMs);
        setNamespace(found.namespace);
        setStart(found);
      } catch (error) {
        setProblem(error as CallError);
        if (!(error as CallError).isRefused) after(RETRY_MS, () => void begin());
      }
    };
    void begin();
    stayAwake();
  }, []);
  useEffect(() => {
    // A link of a notification can be about another namespace.
    const of = path.split('/')[2];
    if (of !== undefined && start) setNamespace((shown) => (shown === undefined ? shown : of));
    if (!first.current) document.querySelector('h1')?.focus();
    else if (start) first.current = false;
    document.querySelector('nav [aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' });
  }, [path, start]);
  useEffect(() => {
    if (path !== '/' || !live.synced) return;
    const to = lists.mine[0]?.final === false ? '/mine' : lists.toDecide.length > 0 ? '/decide' : '/ask';
    history.replaceState(null, '', to);
    setPath(to);
  }, [path, live.synced, lists]);
  if (!start) return <Closed problem={problem} />;
  const app: App = {
    start,
    namespace,
    live,
    ...lists,
    path,
    go: (to) => {
      if (to !== path) history.pushState(null, '', to);
      scrollTo(0, 0);
      show(to);
    },
    // A text alone leaves what the last command did.
    say: (text, result) => setSaid((last) => ({ text, result: result ?? last?.result })),
  };
  const [, , Page] = pages.find(([page]) => isAt(path, page)) ?? [];
  return (
    <AppContext.Provider value={app}>
      <a class="skip" href="#main">
        Skip to the page
      </a>
      <header>
        <b>drawbridge</b>
        <nav aria-label="Pages">
          {pages.map(([to, title]) => (
            <Go key={to} to={to} aria-current={isAt(path, to) ? 'page' : undefined}>
              {title}
              {to === '/decide' && lists.toDecide.length > 0 && <span class="badge">{lists.toDecide.length}</span>}
            </Go>
          ))}
        </nav>
        <Where onNamespace={setNamespace} />
      </header>
      <main id="main" tabIndex={-1}>
        {live.problem !== undefined && (
          <Alert>{live.refused ? live.problem : `What you see may be old: ${live.problem}`}</Alert>
        )}
        <Report said={said} onClose={() => setSaid(undefined)} />
        {Page ? <Page /> : isAt(path, '/requests') ? <RequestDetails key={path} /> : reading}
      </main>
    </AppContext.Provider>
  );
}

/** At the path `/`, until the rows say which page is the first. */
const reading = <p role="status">Reading the requests …</p>;

/** Newest first, and those that have not ended before the others. */
const byAge = (a: RequestRow, b: RequestRow): number =>
  Number(a.final) - Number(b.final) || b.createdMs - a.createdMs || a.key.localeCompare(b.key);

function listsOf(requests: Live['requests'], user: string | undefined): Pick<App, 'mine' | 'toDecide'> {
  const rows = [...requests.values()];
  return {
    mine: rows.filter(({ requester }) => requester === user).sort(byAge),
    toDecide: rows.filter(({ choice }) => choice !== '').sort((a, b) => a.createdMs - b.createdMs),
  };
}

/** If the API server or the console does not answer. */
const RETRY_MS = 2000;

/** Instead of pages, while there is no console to talk to. */
function Closed({ problem }: { readonly problem: CallError | undefined }) {
  const isClosed = !hasToken() || problem?.isRefused;
  return (
    <main>
      <h1>drawbridge</h1>
      {problem && <Alert>{problem.message}</Alert>}
      {isClosed && (
        <p>
          To open the console, run in a terminal: <code>{`kubectl drawbridge console --port ${location.port}`}</code>
        </p>
      )}
      {!isClosed && !problem && <p role="status">Connecting to the cluster …</p>}
    </main>
  );
}

/** Which namespace, as whom, and whether what the page shows is live. */
function Where({ onNamespace }: { readonly onNamespace: (namespace: string | undefined) => void }) {
  const { namespace, start, live } = useApp();
  const [tone, text] = live.synced ? (['good', 'Live'] as const) : (['wait', 'Connecting …'] as const);
  return (
    <div class="where row">
      <label class="row">
        Namespace
        <input
          value={namespace ?? ''}
          placeholder="all"
          autocomplete="off"
          onChange={(event) => {
            const typed = event.currentTarget.value.trim();
            if (typed !== '' || start.mayListAll) onNamespace(typed === '' ? undefined : typed);
            else event.currentTarget.value = namespace ?? '';
          }}
        />
      </label>
      <span role="status">
        {live.problem === undefined ? (
          <Chip tone={tone}>{text}</Chip>
        ) : (
          <Chip tone="bad">{live.refused ? 'Console ended' : 'Connection lost'}</Chip>
        )}
      </span>
      <span class="quiet">
        {start.user} at {start.server.replace('https://', '')}
      </span>
    </div>
  );
}

/** What the last action did. It has the focus if a command ran: its button may be gone. */
function Report({ said, onClose }: { readonly said: Said | undefined; readonly onClose: () => void }) {
  const ref = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (said?.result) ref.current?.focus();
  }, [said?.result]);
  return (
    <div ref={ref} tabIndex={-1} class={said?.result ? 'report' : 'hidden'}>
      <p role="status">{said?.text}</p>
      {said?.result && (
        <>
          <Messages result={said.result} />
          <Line result={said.result} />
          <Button onClick={onClose}>Close</Button>
        </>
      )}
    </div>
  );
}

/** Tells the console, at most once a minute, that a person uses the page: without, it ends. */
function stayAwake(): void {
  let toldMs = nowMs();
  const tell = (): void => {
    if (nowMs() < toldMs + 60_000) return;
    toldMs = nowMs();
    call(paths.awake, { method: 'POST' }).catch(() => undefined);
  };
  for (const input of ['pointerdown', 'keydown', 'wheel']) addEventListener(input, tell, { passive: true });
}

render(<Console />, document.body);
