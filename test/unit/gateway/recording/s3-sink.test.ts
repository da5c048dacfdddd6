import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { portOf } from '../../../../sandbox/ports.ts';
import { until } from '../../../../sandbox/wait.ts';
import { S3Sink } from '../../../../src/gateway/recording/s3-sink.ts';
import { SimulatedClock } from '../../../support/simulated-clock.ts';

const session = '0b0f8f2e-7f2a-4a52-8d0a-3f6c1d2e9a10';
const name = { namespace: 'payments', session };
const folder = `prod/payments/${session}`;
const header = Buffer.from('header\n');
const credentials = {
  AWS_ACCESS_KEY_ID: 'AKIAEXAMPLE',
  AWS_SECRET_ACCESS_KEY: 'hushhushhush',
  AWS_SESSION_TOKEN: 'a-token-of-a-session',
};

type Handle = (request: IncomingMessage, response: ServerResponse, body: Buffer) => void;

const errorText = (code: string, message = ''): string =>
  `<?xml version="1.0"?><Error><Code>${code}</Code><Message>${message}</Message></Error>`;
const pageOf = (keys: readonly string[], next?: string): string =>
  `<?xml version="1.0"?><ListBucketResult><IsTruncated>${next !== undefined}</IsTruncated>${
    next === undefined ? '' : `<NextContinuationToken>${next}</NextContinuationToken>`
  }${keys.map((key) => `<Contents><Key>${key}</Key><LastModified>2026-11-24T10:00:00.000Z</LastModified></Contents>`).join('')}</ListBucketResult>`;

/** A server that answers wrongly. A real one is in test/faults/gateway/recordings-in-s3.test.ts. */
describe('recordings in a bucket whose server misbehaves', () => {
  let server: Server;
  let clock: SimulatedClock;
  let sink: S3Sink;
  let calls: string[];
  let handle: Handle;
  let earlier: NodeJS.ProcessEnv;

  beforeEach(async () => {
    calls = [];
    earlier = { ...process.env };
    Object.assign(process.env, credentials);
    server = createServer((request, response) => {
      calls.push(`${request.method} ${String(request.url).split('?')[0]}`);
      const parts: Buffer[] = [];
      request.on('data', (part: Buffer) => parts.push(part));
      request.on('end', () => handle(request, response, Buffer.concat(parts)));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    clock = new SimulatedClock();
    const endpoint = `http://127.0.0.1:${portOf(server)}`;
    sink = new S3Sink({ bucket: 'recordings', prefix: 'prod', region: 'us-east-1', endpoint }, clock);
  });
  afterEach(() => {
    for (const key of Object.keys(process.env)) if (key.startsWith('AWS_')) delete process.env[key];
    Object.assign(process.env, earlier);
    server.closeAllConnections();
    server.close();
  });

  const stored: Handle = (_, response) => response.setHeader('etag', '"1"').end();
  const answering =
    (status: number, text: string): Handle =>
    (_, response) =>
      response.writeHead(status, { 'content-type': 'application/xml' }).end(text);

  it('writes each part as an object of its own, and lets none replace another', async () => {
    const conditions: unknown[] = [];
    handle = (request, response, body) => {
      conditions.push(request.headers['if-none-match']);
      stored(request, response, body);
    };
    const file = await sink.create(name, header);
    await file.append(Buffer.from('more'));
    await file.close();
    assert.deepEqual(calls, [`PUT /recordings/${folder}/000001.cast`, `PUT /recordings/${folder}/000002.cast`]);
    assert.deepEqual(conditions, ['*', '*']);
  });

  it('uses the role that the token of a ServiceAccount opens', async () => {
    const directory = await mkdtemp(join(tmpdir(), 's3-'));
    const file = join(directory, 'token');
    await writeFile(file, 'a-token-of-a-service-account');
    for (const key of Object.keys(credentials)) delete process.env[key];
    Object.assign(process.env, {
      AWS_ROLE_ARN: 'arn:aws:iam::123456789012:role/recordings',
      AWS_WEB_IDENTITY_TOKEN_FILE: file,
      AWS_ENDPOINT_URL_STS: `http://127.0.0.1:${portOf(server)}`,
    });
    const seen: string[] = [];
    handle = (request, response, body) => {
      if (request.method === 'PUT') {
        seen.push(`${request.headers.authorization} ${request.headers['x-amz-security-token']}`);
        stored(request, response, body);
        return;
      }
      seen.push(body.toString());
      const given =
        '<AccessKeyId>AKIAROLE</AccessKeyId><SecretAccessKey>x</SecretAccessKey><SessionToken>of-role</SessionToken>';
      answering(
        200,
        `<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>${given}<Expiration>2100-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`,
      )(request, response, body);
    };
    await sink.create(name, header);
    assert.match(seen[0] ?? '', /Action=AssumeRoleWithWebIdentity.*WebIdentityToken=a-token-of-a-service-account/);
    assert.match(seen[1] ?? '', /Credential=AKIAROLE\/\d+\/us-east-1\/s3\/aws4_request.* of-role$/);
    await rm(directory, { recursive: true });
  });

  for (const wrong of [
    { namespace: '..', session },
    { namespace: 'a/b', session },
    { namespace: 'payments', session: '../../x' },
  ]) {
    it(`refuses the name ${JSON.stringify(wrong)}`, async () => {
      await assert.rejects(sink.create(wrong, header), /cannot store recording/);
      assert.equal(await sink.read(wrong), undefined);
      assert.deepEqual(calls, []);
    });
  }

  const answers: Record<string, [Handle, RegExp]> = {
    'the success of something that is no S3 server': [answering(200, '<html>welcome</html>'), /has no ETag/],
    'an error, by its code alone': [
      answering(403, errorText('AccessDenied', Object.values(credentials).join(' '))),
      /^PutObject: the S3 server answered 403 AccessDenied$/,
    ],
    'an error that is no XML': [answering(400, '}{<'), /^PutObject: /],
    'an endless error': [
      (_, response) => {
        response.writeHead(400, { 'content-type': 'application/xml' });
        const fill = (): void => {
          while (!response.destroyed && response.write('x'.repeat(65_536)));
        };
        response.on('drain', fill);
        fill();
      },
      /^PutObject: the S3 server answered 400 /,
    ],
  };
  for (const [what, [handler, message]] of Object.entries(answers)) {
    it(`rejects ${what}, and repeats no credentials`, async () => {
      handle = handler;
      await assert.rejects(sink.create(name, header), (error: Error) => {
        assert.match(error.message, message);
        assert.ok(error.message.length < 300);
        for (const secret of Object.values(credentials)) assert.ok(!String(error.stack).includes(secret));
        return true;
      });
    });
  }

  it('follows no redirect, neither to another server nor to another region', async () => {
    for (const status of [301, 307]) {
      handle = (_, response) =>
        response
          .writeHead(status, { location: 'http://127.0.0.1:1/elsewhere', 'x-amz-bucket-region': 'eu-west-1' })
          .end(errorText('PermanentRedirect'));
      await assert.rejects(sink.create(name, header), new RegExp(`the S3 server answered ${status}`));
    }
    assert.equal(calls.length, 2);
  });

  it('gives up after 5 s on a server that does not answer, or does not finish', async () => {
    for (const silent of [() => {}, (_: unknown, response: ServerResponse) => response.writeHead(400).write('<')]) {
      handle = silent as Handle;
      const before = calls.length;
      const created = assert.rejects(sink.create(name, header), /^PutObject: no answer within 5 s$/);
      await until('the call', () => calls.length > before, { timeoutMs: 5000, everyMs: 5 });
      await clock.advance(5000);
      await created;
    }
  });

  it('repeats a call that the server could not answer', async () => {
    handle = (request, response, body) =>
      calls.length === 1
        ? answering(500, errorText('InternalError'))(request, response, body)
        : stored(request, response, body);
    await sink.create(name, header);
    assert.equal(calls.length, 2);
  });

  describe('if the answer to a write was lost', () => {
    const lostThen =
      (found: string): Handle =>
      (request, response, body) => {
        if (calls.length === 1) request.socket.destroy();
        else if (request.method === 'PUT') answering(412, errorText('PreconditionFailed'))(request, response, body);
        else response.end(found);
      };

    it('takes the object that the write created', async () => {
      handle = lostThen('header\n');
      await sink.create(name, header);
      assert.deepEqual(
        calls.map((call) => call.split(' ')[0]),
        ['PUT', 'PUT', 'GET'],
      );
    });

    it('takes no object that another created', async () => {
      handle = lostThen('other');
      await assert.rejects(sink.create(name, header), /412 PreconditionFailed/);
    });
  });

  it('takes no object that exists, even with the same bytes', async () => {
    handle = (request, response, body) =>
      request.method === 'PUT'
        ? answering(412, errorText('PreconditionFailed'))(request, response, body)
        : response.end('header\n');
    await assert.rejects(sink.create(name, header), /412 PreconditionFailed/);
    assert.equal(calls.length, 1);
  });

  describe('when it lists', () => {
    const list = async (): Promise<string[]> => {
      const found: string[] = [];
      for await (const { namespace, session: id } of sink.list()) found.push(`${namespace}/${id}`);
      return found;
    };

    it('reads page after page, and skips what is no recording', async () => {
      const second = session.replace('0b', '0c');
      const first = ['prod/notes.txt', '/000001.cast', '/000002.cast', '/000003.cast/x'];
      const later = [`prod/payments/${second}/000001.cast`, 'prod/payments/notes.cast'];
      handle = (request, response, body) => {
        const isSecond = String(request.url).includes('continuation-token=2');
        const keys = isSecond ? later : first.map((key) => (key.startsWith('/') ? `${folder}${key}` : key));
        answering(200, pageOf(keys, isSecond ? undefined : '2'))(request, response, body);
      };
      assert.deepEqual(await list(), [`payments/${session}`, `payments/${second}`]);
    });

    for (const [what, keys] of [
      ['the same page again and again', [`${folder}/000001.cast`]],
      ['keys in another order', [`${folder}/000002.cast`, `${folder}/000001.cast`]],
      ['keys of others', ['other/payments/x']],
    ] as const) {
      it(`stops at ${what}`, async () => {
        handle = answering(200, pageOf(keys, 'again'));
        await assert.rejects(list(), /lists other keys than it was asked for, or in another order/);
      });
    }
  });

  it('does not play a recording without one of its parts', async () => {
    handle = (request, response, body) =>
      String(request.url).includes('list-type')
        ? answering(200, pageOf([`${folder}/000001.cast`, `${folder}/000003.cast`]))(request, response, body)
        : response.end('part');
    const stream = await sink.read(name);
    let text = '';
    await assert.rejects(async () => {
      for await (const part of stream ?? []) text += String(part);
    }, /part 2 of the recording is missing/);
    assert.equal(text, 'part');
  });
});
