import winston from 'winston';
import Transport from 'winston-transport';
import { type Clock, formatMicroTime } from '../kit/clock.ts';
import { stderrWriter } from './stderr-writer.ts';

/**
 * Callers choose each field and log no object as a whole, because it might contain a Secret. Each
 * call writes one line: control characters are escaped, and texts truncated after 4,096 characters.
 */
export interface Log {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /** Adds `fields` to every line. */
  child(fields: LogFields): Log;
}

/** Omits undefined values, appends `_` to `time`, `level`, and `message`, keeps 64 items a list. */
export type LogFields = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;

/** The least detailed first. */
export type LogLevel = 'error' | 'warn' | 'info' | 'debug';

export interface LogOptions {
  /** Default `info`. */
  readonly level?: LogLevel;
  /** `text` (time, level, message, key=value) is for people. Default `json`. */
  readonly format?: 'json' | 'text';
  readonly clock: Clock;
  /** One line with its newline; must not throw. Default: to stderr, before it returns. */
  readonly write?: (line: string) => void;
}

type LineFormat = (level: string, message: string, fields: LogFields) => string;

export function createLog({ level = 'info', format = 'json', clock, write = stderrWriter(clock) }: LogOptions): Log {
  const formatLine = format === 'json' ? jsonFormat(clock) : textFormat(clock);
  const logger = winston.createLogger({
    level,
    levels: { error: 0, warn: 1, info: 2, debug: 3 },
    transports: [new LineTransport(formatLine, write)],
  });
  return logOf(logger, {});
}

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

/** Writes before `log` returns: winston's Console transport loses lines at the exit. */
class LineTransport extends Transport {
  readonly #format: LineFormat;
  readonly #write: (line: string) => void;

  constructor(format: LineFormat, write: (line: string) => void) {
    super();
    this.#format = format;
    this.#write = write;
  }

  override log(info: { level: string; message: string; fields: LogFields }, next: () => void): void {
    this.#write(`${this.#format(info.level, info.message, info.fields)}\n`);
    next();
  }
}

const RESERVED = new Set(['time', 'level', 'message']);
const MAX_TEXT_LENGTH = 4096;
const MAX_ITEMS = 64;

/** Omits undefined values, appends `_` to reserved names, and truncates values. */
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
  text.length > MAX_TEXT_LENGTH ? `${text.slice(0, MAX_TEXT_LENGTH)}… (${text.length} characters)` : text;

function jsonFormat(clock: Clock): LineFormat {
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

function textFormat(clock: Clock): LineFormat {
  return (level, message, fields) => {
    const pairs = writtenFields(fields).map(([key, value]) => ` ${textValue(key)}=${textValue(value)}`);
    return `${formatMicroTime(clock.now())} ${level.toUpperCase().padEnd(5)} ${escapeControls(cut(message))}${pairs.join('')}`;
  };
}

function literal(value: unknown): string {
  return escapeControls(JSON.stringify(value) ?? 'null');
}

/** Unless the value has only characters that cannot end or split it. */
function textValue(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return /^[\w./:@+,[\]-]+$/.test(text) ? text : literal(value);
}

/**
 * What terminals and viewers interpret. JSON.stringify escapes only C0; the text format, nothing.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern matches control characters on purpose.
const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

function escapeControls(text: string): string {
  return text.replace(CONTROLS, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
