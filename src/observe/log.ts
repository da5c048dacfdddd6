import winston from 'winston';
import Transport from 'winston-transport';
import { type Clock, formatMicroTime } from '../kit/clock.ts';
import { stderrWriter } from './stderr-writer.ts';

/**
 * Operational log. Callers choose each field and log no object as a whole, because it might contain a Secret.
 * The log escapes text and cuts it to 4,096 characters, so each call writes one line.
 */
export interface Log {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /** A log that adds `fields` to every line. */
  child(fields: LogFields): Log;
}

export type LogFields = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;

export type LogLevel = 'error' | 'warn' | 'info' | 'debug';

export interface LogOptions {
  /** Default `info`. */
  readonly level?: LogLevel;
  /** `json` for log collectors, `text` (time, level, message, key=value) for people. Default `json`. */
  readonly format?: 'json' | 'text';
  readonly clock: Clock;
  /** Writes one line, which ends with a newline; must not throw. Default: writes to stderr before it returns. */
  readonly write?: (line: string) => void;
}

type Line = (level: string, message: string, fields: LogFields) => string;

export function createLog({ level = 'info', format = 'json', clock, write = stderrWriter(clock) }: LogOptions): Log {
  const line = format === 'json' ? jsonLine(clock) : textLine(clock);
  const logger = winston.createLogger({
    level,
    levels: { error: 0, warn: 1, info: 2, debug: 3 },
    transports: [new LineTransport(line, write)],
  });
  return logOf(logger, {});
}

/** Logs nothing; for tests and tools. */
export const noLog: Log = { debug() {}, info() {}, warn() {}, error() {}, child: () => noLog };

function logOf(logger: winston.Logger, base: LogFields): Log {
  const at =
    (level: LogLevel) =>
    (message: string, fields: LogFields = {}): void => {
      logger.log({ level, message, fields: { ...base, ...fields } });
    };
  return {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    child: (fields) => logOf(logger, { ...base, ...fields }),
  };
}

/** Writes the line before `log` returns. winston's Console transport loses lines when the process exits. */
class LineTransport extends Transport {
  readonly #line: Line;
  readonly #write: (line: string) => void;

  constructor(line: Line, write: (line: string) => void) {
    super();
    this.#line = line;
    this.#write = write;
  }

  override log(info: { level: string; message: string; fields: LogFields }, next: () => void): void {
    this.#write(`${this.#line(info.level, info.message, info.fields)}\n`);
    next();
  }
}

const RESERVED = new Set(['time', 'level', 'message']);
const MAX_TEXT = 4096;
/** The log cuts a list to this number of items. */
const MAX_ITEMS = 64;

/** The fields without undefined values. The name of a field that the log itself writes gets a trailing underscore. */
function writtenFields(fields: LogFields): [string, string | number | boolean | readonly string[]][] {
  const written: [string, string | number | boolean | readonly string[]][] = [];
  for (const [key, value] of Object.entries(fields)) {
    if (value !== undefined) written.push([RESERVED.has(key) ? `${key}_` : key, bounded(value)]);
  }
  return written;
}

function bounded(value: string | number | boolean | readonly string[]): typeof value {
  if (typeof value === 'string') return cut(value);
  return typeof value === 'object' ? value.slice(0, MAX_ITEMS).map(cut) : value;
}

const cut = (text: string): string =>
  text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}… (${text.length} characters)` : text;

function jsonLine(clock: Clock): Line {
  return (level, message, fields) => {
    const all = [
      ['time', formatMicroTime(clock.now())],
      ['level', level],
      ['message', cut(message)],
      ...writtenFields(fields),
    ];
    return `{${all.map(([key, value]) => `${literal(key)}:${literal(value)}`).join(',')}}`;
  };
}

function textLine(clock: Clock): Line {
  return (level, message, fields) => {
    const pairs = writtenFields(fields).map(([key, value]) => ` ${bare(key)}=${bare(value)}`);
    return `${formatMicroTime(clock.now())} ${level.toUpperCase().padEnd(5)} ${escapeControls(cut(message))}${pairs.join('')}`;
  };
}

function literal(value: unknown): string {
  return escapeControls(JSON.stringify(value) ?? 'null');
}

/** Unquoted if the text is unambiguous without quotes. */
function bare(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return /^[\w./:@+,[\]-]+$/.test(text) ? text : literal(value);
}

/** Terminals and viewers interpret these characters, and JSON does not escape them: DEL, C1 controls, line separators, direction overrides. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern matches control characters on purpose.
const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

function escapeControls(text: string): string {
  return text.replace(CONTROLS, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
