import './main.css';
import { type ComponentType, render } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { paths, type Start } from '../wire.ts';
import { get } from './api.ts';
import { type App, AppContext } from './app.ts';
import { useLive } from './live.ts';
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
import { setServerTime } from './time.ts';
import { Go } from './ui.tsx';

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

function Console() {
  const [start, setStart] = useState<Start>();
  const [problem, setProblem] = useState<string>();
  const [path, setPath] = useState(location.pathname);
  const [said, say] = useState('');
  const [namespace, setNamespace] = useState<string>();
  const live = useLive(namespace, start !== undefined);
  useEffect(() => {
    get<Start>(paths.start).then(
      (found) => {
        setServerTime(found.nowMs);
        setNamespace(found.namespace);
        setStart(found);
      },
      (error: Error) => setProblem(error.message),
    );
    addEventListener('popstate', () => setPath(location.pathname));
  }, []);
  if (!start)
    return problem === undefined ? (
      <p role="status">Connecting to the cluster …</p>
    ) : (
      <p role="alert" class="error">
        {problem}
      </p>
    );
  const go = (to: string): void => {
    history.pushState(null, '', to);
    setPath(to);
  };
  const app: App = { start, namespace, live, path, go, say };
  const [, , Page] = pages.find(([one]) => one === path) ?? [];
  return (
    <AppContext.Provider value={app}>
      <header>
        <nav aria-label="Pages">
          {pages.map(([to, title]) => (
            <Go key={to} to={to} current={to === path}>
              {title}
            </Go>
          ))}
        </nav>
        <label>
          Namespace{' '}
          <input
            value={namespace ?? ''}
            placeholder="all"
            onChange={(event) => setNamespace(event.currentTarget.value.trim() || undefined)}
          />
        </label>
        <span>{start.user}</span>
      </header>
      <main>{Page ? <Page /> : path.startsWith('/requests/') ? <RequestDetails /> : <Mine />}</main>
      <p role="status" class="said">
        {said}
      </p>
    </AppContext.Provider>
  );
}

render(<Console />, document.body);
