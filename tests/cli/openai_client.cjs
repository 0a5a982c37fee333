// The openai package for node against a running server, for tests/cli/test_clients.py: node openai_client.cjs PACKAGE BASE_URL KEY
// Prints a word for each part that conforms; the first that does not ends the program.
const assert = require('node:assert');
const OpenAI = require(process.argv[2]);

const schema = {
  type: 'object', properties: {city: {type: 'string', maxLength: 20}}, required: ['city'], additionalProperties: false,
};

async function main() {
  const options = {baseURL: process.argv[3], apiKey: process.argv[4], maxRetries: 0};
  const client = new OpenAI(options);
  const model = (await client.models.list()).data[0].id;
  const messages = [{role: 'user', content: 'Say hello.'}];
  const ask = {model, messages, temperature: 0, max_tokens: 20};

  const whole = await client.chat.completions.create(ask);
  assert(whole.choices[0].message.content);
  console.log('chat');

  let text = '';
  for await (const chunk of await client.chat.completions.create({...ask, stream: true})) text += chunk.choices[0].delta.content ?? '';
  assert.strictEqual(text, whole.choices[0].message.content);
  console.log('stream');

  const shaped = await client.chat.completions.create({
    ...ask, max_tokens: 100, response_format: {type: 'json_schema', json_schema: {name: 'place', strict: true, schema}},
  });
  assert.deepStrictEqual(Object.keys(JSON.parse(shaped.choices[0].message.content)), ['city']);
  console.log('schema');

  const tools = [{type: 'function', function: {name: 'get_weather', description: 'Weather of a city', parameters: schema}}];
  const called = await client.chat.completions.create({...ask, max_tokens: 100, tools, tool_choice: 'required', parallel_tool_calls: false});
  const call = called.choices[0].message.tool_calls[0];
  assert.strictEqual(call.function.name, 'get_weather');
  assert.deepStrictEqual(Object.keys(JSON.parse(call.function.arguments)), ['city']);
  console.log('tools');

  const answer = await client.responses.create({model, input: 'Say hello.', temperature: 0, max_output_tokens: 20, store: false});
  let made = '';
  for await (const event of await client.responses.create({model, input: 'Say hello.', temperature: 0, max_output_tokens: 20, store: false, stream: true}))
    if (event.type === 'response.output_text.delta') made += event.delta;
  assert(answer.output_text);
  assert.strictEqual(made, answer.output_text);
  console.log('responses');

  const vectors = await client.embeddings.create({model, input: ['a cat', 'a dog']});
  const length = vectors.data[0].embedding.reduce((sum, x) => sum + x * x, 0);
  assert(vectors.data.length === 2 && Math.abs(length - 1) < 1e-4);
  console.log('embeddings');

  await assert.rejects(client.chat.completions.create({...ask, temperature: 9}), (error) => error.status === 400 && error.param === 'temperature');
  await assert.rejects(client.chat.completions.create({...ask, model: 'none'}), (error) => error.status === 404 && error.code === 'model_not_found');
  await assert.rejects(new OpenAI({...options, apiKey: 'wrong'}).models.list(), (error) => error.status === 401);
  console.log('errors');
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
