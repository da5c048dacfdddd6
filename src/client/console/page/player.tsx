import { create, type RecordingEvent, type Source } from 'asciinema-player';
import { render } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import './player.css';
import { type Failure, paths } from '../wire.ts';
import { EndSession } from './actions.tsx';
import { call, lines } from './api.ts';
import { Alert, Button } from './ui.tsx';

/** Of the path: see `PlayerLink`. */
const query = Object.fromEntries(new URLSearchParams(location.search));
const { namespace = '', name = '', from } = query;
const isLive = from === 'sessions';

/** The person in the session chooses its size: a larger one would take the memory of this tab. */
const [MAX_COLS, MAX_ROWS] = [500, 200];
/** Characters of a recording. */
const MAX_LENGTH = 128 * 1024 * 1024;

/** Of `80x24`. */
function sizeOf(text: string) {
  const [cols, rows] = text.split('x').map(Number);
  return { cols: Math.min(cols || 80, MAX_COLS), rows: Math.min(rows || 24, MAX_ROWS) };
}

/** Of asciicast v2, which the console has checked: an event, or the header; or what went wrong. */
type Line =
  | readonly [seconds: number, code: string, data: string]
  | { readonly width: number; readonly height: number }
  | Failure;

/** Lines with their events; the header is an event, too. Rejects if the view or recording breaks off. */
async function* cast(signal: AbortSignal): AsyncIterable<readonly [text: string, event: RecordingEvent | undefined]> {
  for await (const text of lines(await call(paths.cast, { query, signal }))) {
    const line = JSON.parse(text) as Line;
    if ('message' in line) throw new Error(line.message);
    const [seconds, code, data] = 'width' in line ? ([0, 'r', `${line.width}x${line.height}`] as const) : line;
    const shown = code === 'r' ? Object.values(sizeOf(data)).join('x') : data;
    // Input may have passwords.
    yield [text, code === 'i' ? undefined : [seconds * 1000, code as 'o' | 'r' | 'm', shown]];
  }
}

interface Shown {
  readonly source?: Source;
  /** Of the download. */
  readonly url?: string;
  /** Why the session ended: its last marker. */
  readonly why?: string;
  readonly problem?: string;
}
type Show = (change: Shown) => void;

/** What asciinema-player calls a driver. It takes one as a source, which its types lack. */
const liveSource =
  (show: Show) =>
  ({ dispatch }: { readonly dispatch: (event: string, data?: unknown) => void }) => {
    const stop = new AbortController();
    const follow = async (): Promise<void> => {
      let why = '';
      for await (const [, [, code, data] = []] of cast(stop.signal)) {
        if (code === 'o') dispatch('output', data);
        if (code === 'r') dispatch('resize', sizeOf(String(data)));
        if (code === 'm') why = String(data);
      }
      show({ why });
    };
    const play = (): boolean => {
      dispatch('playing');
      follow()
        .catch(({ message }: Error) => stop.signal.aborted || show({ problem: message }))
        .finally(() => dispatch('pause'));
      return true;
    };
    return { play, stop: () => stop.abort(), getTiming: () => ({ time: null, rate: 0, sampledAt: 0 }) };
  };

/** Shows also what precedes a damage. */
async function load(show: Show, signal: AbortSignal): Promise<void> {
  const [texts, events]: [string[], RecordingEvent[]] = [[], []];
  let length = 0;
  try {
    for await (const [text, event] of cast(signal)) {
      length += texts.push(`${text}\n`) && text.length;
      if (length > MAX_LENGTH) throw new Error('The recording is too large for a browser. Play it in a terminal.');
      if (event) events.push(event);
    }
    show({ why: String(events.findLast(([, code]) => code === 'm')?.[2] ?? '') });
  } catch (error) {
    if (!signal.aborted) show({ problem: (error as Error).message });
  }
  if (events.length === 0) return;
  const url = URL.createObjectURL(new Blob(texts, { type: 'application/x-asciicast' }));
  show({ url, source: { data: {}, parser: () => ({ ...sizeOf(''), events }) } });
}

/** Another speed makes another player, which goes on at the same time. */
function Terminal({ source, speed }: { readonly source: Source; readonly speed: number }) {
  const ref = useRef<HTMLDivElement>(null);
  const seconds = useRef(0);
  useEffect(() => {
    if (!ref.current) return undefined;
    const options = { autoPlay: true, fit: 'both', idleTimeLimit: 2, controls: !isLive } as const;
    const player = create(source, ref.current, { ...options, speed, startAt: seconds.current });
    return () => {
      seconds.current = player.getCurrentTime();
      player.dispose();
    };
  }, [source, speed]);
  return <div ref={ref} class="terminal" />;
}

function Player() {
  const [{ source, url, why, problem }, setShown] = useState<Shown>({});
  const [speed, setSpeed] = useState(1);
  // The journal has a line of each view: a link elsewhere must not make one.
  const [isAsked, ask] = useState(window.name !== '');
  useEffect(() => {
    if (!isAsked) return undefined;
    const show: Show = (change) => setShown((now) => ({ ...now, ...change }));
    const stop = new AbortController();
    if (isLive) show({ source: liveSource(show) as unknown as Source });
    else void load(show, stop.signal);
    return () => stop.abort();
  }, [isAsked]);
  const hasEnded = why !== undefined || problem !== undefined;
  return (
    <>
      <header>
        <h1>{isLive ? 'Live session' : 'Recording'}</h1>
        <p>{window.name}</p>
        {isLive && !hasEnded && <EndSession namespace={namespace} name={name} />}
        {url !== undefined && (
          <>
            <label>
              Speed{' '}
              <select value={speed} onChange={({ currentTarget }) => setSpeed(Number(currentTarget.value))}>
                {[0.5, 1, 2, 4, 8, 16].map((one) => (
                  <option key={one}>{one}</option>
                ))}
              </select>
            </label>
            <a class="button" href={url} download={`${name}${problem === undefined ? '' : '.part'}.cast`}>
              Download
            </a>
          </>
        )}
        <p class="quiet">
          {name} in namespace {namespace}
        </p>
      </header>
      <main>
        {!isAsked && (
          <Button class="main" onClick={() => ask(true)}>
            Show
          </Button>
        )}
        {isAsked && !source && !hasEnded && <p role="status">Reading the recording …</p>}
        {problem !== undefined && <Alert>{problem}</Alert>}
        {why !== undefined && (
          <p role="status" class="note">
            {why ? `Last notice: ${why}` : 'The recording does not say how the session ended.'}
          </p>
        )}
        {source && <Terminal source={source} speed={speed} />}
      </main>
    </>
  );
}

document.title = `${window.name || name} · drawbridge`;
render(<Player />, document.body);
