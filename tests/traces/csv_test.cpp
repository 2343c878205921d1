#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <filesystem>

#include "sim/core/csv_text.hpp"
#include "sim/core/error.hpp"
#include "sim/core/random.hpp"
#include "tests/traces/sample_trace.hpp"
#include "traces/exporter.hpp"
#include "traces/importer.hpp"
#include "traces/models/models.hpp"

namespace tandem {
namespace {

using testing::full_trace;

std::string to_csv_text(const Trace& trace) {
  return Registry<Exporter>::instance().make("csv")->write(trace);
}

Imported import_text(const std::string& text, const std::string& importer = "csv") {
  return import_source({"toy.csv", text}, importer);
}

std::string error_of(const std::string& text, const std::string& importer = "csv", ErrorKind kind = ErrorKind::input) {
  try {
    (void)import_text(text, importer);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    return error.what();
  }
  return "no error";
}

bool mentions(const Trace& trace, const std::string& text) {
  return std::any_of(trace.notes.begin(), trace.notes.end(),
                     [&](const std::string& note) { return note.find(text) != std::string::npos; });
}

// ---- RFC 4180 ----

std::vector<std::vector<std::string>> rows_of(std::string_view text) {
  std::vector<std::vector<std::string>> rows;
  CsvReader reader(text);
  while (const auto record = reader.next()) {
    rows.emplace_back();
    for (const auto& cell : record->cells) rows.back().push_back(cell.text);
  }
  return rows;
}

TEST(CsvText, ReadsWhatTheRfcAllows) {
  using Rows = std::vector<std::vector<std::string>>;
  EXPECT_EQ(rows_of("a,b\r\n1,\"x, \"\"y\"\"\r\nz\"\r\n"), (Rows{{"a", "b"}, {"1", "x, \"y\"\r\nz"}}));
  EXPECT_EQ(rows_of("\xEF\xBB\xBF"
                    " a , \"b\" ,,\n\n , ,\nc"),
            (Rows{{"a", "b", "", ""}, {"c"}}));
  EXPECT_EQ(rows_of("\"\"\n"), (Rows{{""}}));
  EXPECT_EQ(rows_of("# a remark, with \"quotes\n#key = \"a, b\",,\n[ name ],,\n"),
            (Rows{{" a remark, with \"quotes"}, {"key", "a, b"}, {"name"}}));
}

RC_GTEST_PROP(CsvText, AnyCellsSurvive, ()) {
  const auto cell = rc::gen::container<std::string>(rc::gen::elementOf(std::string("a b,\"\n\r\t#[;\\x")));
  const auto cells = *rc::gen::nonEmpty(rc::gen::container<std::vector<std::string>>(cell));
  const auto rows = rows_of("h\n" + csv_line(cells) + "t\n");
  // A row without any character is no row, save that of one cell.
  const bool blank =
      cells.size() > 1 && std::all_of(cells.begin(), cells.end(), [](const auto& c) { return c.empty(); });
  RC_ASSERT(rows.size() == (blank ? 2U : 3U));
  if (!blank) RC_ASSERT(rows[1] == cells);
}

TEST(CsvText, MistakesNameTheirLine) {
  const auto message = [](std::string_view text) -> std::string {
    try {
      (void)rows_of(text);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_NE(message("a\nb,\"c\n\n").find("line 2 opens a quote"), std::string::npos);
  EXPECT_NE(message("a\n\"b\nc\"d\n").find("line 3 has 'd' behind a closing quote"), std::string::npos);
  EXPECT_NE(message("a\n5\" disk\n").find("line 2 has a quote inside the cell"), std::string::npos);
  EXPECT_NE(message("# a = b, c\n").find("line 1 has a comma in the value of 'a'"), std::string::npos);
  EXPECT_NE(message("[splits\n").find("line 1 starts with '[splits'"), std::string::npos);
}

// ---- round trips ----

TEST(Csv, RoundTripKeepsEveryField) {
  Trace trace = full_trace();
  trace.other_batches = {{2, {{0.1}}, {}, {{0.3, 0.4}}}, {8, {}, {{0.7}}, {}}};
  trace.outside = {{OutsideTime::Kind::copy, {{1e-3}}}, {OutsideTime::Kind::input_wait, {}}};
  trace.collectives = {{"all-reduce", Bytes(8'196'000), Seconds(1.0 / 3)}, {"a, \"b\"", Bytes(0), Seconds(0)}};
  trace.notes.push_back("two\nlines, # [and] \"quotes\"");
  trace.layers[0].name = "-";
  trace.layers[1].name = " a;b:c\\ ";
  trace.layers[2].inputs = {LayerId{0}, LayerId{1}};
  trace.layers[0].parameters[0].name = "w;:\\ ";
  trace.layers[0].samples[0].seconds = {0.1 + 0.2, 1e-300, 5e-324, 123456.789e-7, 0};
  const auto imported = import_text(to_csv_text(trace), "");
  EXPECT_TRUE(imported.trace == trace);
  EXPECT_EQ(to_csv_text(imported.trace), to_csv_text(trace));
}

RC_GTEST_PROP(Csv, AnyValidTraceSurvives, ()) {
  Trace trace = testing::random_trace();
  trace.model += "m";  // a trace without a model is called after its file
  for (int n = *rc::gen::inRange(0, 3); n > 0; --n) {
    trace.collectives.push_back(
        {testing::random_text() + "c", Bytes(testing::random_bytes()), Seconds(*rc::gen::inRange(0, 1 << 30) / 7e9)});
  }
  for (int i = 0; i < 5; ++i) {
    if (*rc::gen::arbitrary<bool>()) {
      trace.outside.push_back({static_cast<OutsideTime::Kind>(i), testing::random_samples()});
    }
  }
  std::int64_t batch = 0;
  for (int n = *rc::gen::inRange(0, 3); n > 0; --n) {
    batch += *rc::gen::inRange(1, 1000);
    if (batch == trace.batch) continue;
    trace.other_batches.push_back(
        {batch, testing::random_samples(), testing::random_samples(), testing::random_samples()});
  }
  RC_ASSERT(import_text(to_csv_text(trace)).trace == trace);
}

TEST(Csv, ShippedTracesAndModelsSurvive) {
  for (const auto& name : shipped_traces()) {
    const Trace trace = load_trace(name);
    EXPECT_TRUE(import_text(to_csv_text(trace), "").trace == trace) << name;
  }
  for (const auto& name : model_names()) {
    const Trace trace = build_model(name, 4);
    EXPECT_TRUE(import_text(to_csv_text(trace), "").trace == trace) << name;
  }
}

// ---- by hand ----

TEST(Csv, ReadsATableByHand) {
  const auto [trace, report] = import_text(
      "# LeNet's head, typed in\n"
      "# batch = 2\n"
      "# device = \"my box, the small one\"\n"
      "layer,kind,inputs,input_shapes,output_shape,kernel,parameters,forward_ms,backward_us\n"
      "conv1,conv,,2x1x28x28,2x20x24x24,5x5,520,1.5;1.7,2500\n"
      "pool1,max-pool,,,,2x2,,0.25,\n"
      "ip1,fc,pool1,,2x10,,weight:10x2880;bias:10,3,6000\n");
  EXPECT_EQ(trace.model, "toy");
  EXPECT_EQ(trace.device, "my box, the small one");
  EXPECT_EQ(trace.batch, 2);
  ASSERT_EQ(trace.layers.size(), 3U);
  const auto& conv = trace.layers[0];
  EXPECT_EQ(conv.parameters, (std::vector<ParameterTensor>{{"weight", {20, 1, 5, 5}}, {"bias", {20}}}));
  EXPECT_EQ(conv.stride, (std::vector<int>{1, 1}));
  EXPECT_EQ(conv.pad_begin, (std::vector<int>{0, 0}));
  EXPECT_EQ(conv.samples[0].seconds, (std::vector<double>{1.5e-3, 1.7e-3}));
  EXPECT_EQ(conv.samples[2].seconds, (std::vector<double>{2.5e-3}));
  EXPECT_TRUE(conv.backward_is_joint);
  EXPECT_FALSE(conv.needs_input_gradient);
  EXPECT_EQ(conv.activation_bytes, Bytes(4 * 2 * 20 * 24 * 24));
  EXPECT_DOUBLE_EQ(conv.flops[0].count(), 2.0 * 2 * 20 * 24 * 24 * 25);
  const auto& pool = trace.layers[1];
  EXPECT_EQ(pool.inputs, (std::vector<LayerId>{LayerId{0}}));
  EXPECT_EQ(pool.input_shapes, (std::vector<Shape>{{2, 20, 24, 24}}));
  EXPECT_EQ(pool.output_shape, (Shape{2, 20, 12, 12}));
  EXPECT_EQ(pool.stride, (std::vector<int>{2, 2}));
  EXPECT_FALSE(pool.backward_is_joint);
  EXPECT_EQ(trace.layers[2].input_shapes, (std::vector<Shape>{{2, 20, 12, 12}}));
  EXPECT_TRUE(trace.layers[2].needs_input_gradient);
  EXPECT_TRUE(mentions(trace, "output shapes derived")) << trace.notes.size();
  EXPECT_EQ(report.entries[0].count, 3);
  EXPECT_EQ(report.entries.back().what, "comment lines");
  EXPECT_EQ(report.entries.back().count, 1);
}

TEST(Csv, NamesAndTimesAloneAreEnoughAndTheRestIsSaid) {
  const auto trace =
      import_text("Name,Forward_ms,backward_data_ms,backward_weight_ms\nconv1,1,2,3\nmystery,4,,\n", "csv:batch=8")
          .trace;
  EXPECT_EQ(trace.batch, 8);
  EXPECT_EQ(trace.layers[0].kind, OpKind::conv);
  EXPECT_EQ(trace.layers[1].kind, OpKind::other);
  EXPECT_EQ(trace.layers[1].inputs, (std::vector<LayerId>{LayerId{0}}));
  EXPECT_DOUBLE_EQ(trace.total(Pass::backward_data).count(), 2e-3);
  EXPECT_EQ(trace.layers[0].activation_bytes, Bytes(0));
  for (const char* note : {"batch 8 as given", "guessed from names: conv1 conv", "kept as 'other': mystery",
                           "shapes unknown", "input shape unknown"}) {
    EXPECT_TRUE(mentions(trace, note)) << note;
  }
}

TEST(Csv, TheBatchIsStatedShownOrAskedFor) {
  EXPECT_EQ(import_text("layer,output_shape,forward_s\na,4x3,1\nb,4x5,1\n").trace.batch, 4);
  EXPECT_NE(error_of("layer,output_shape,forward_s\na,4x3,1\nb,5x5,1\n").find("# batch = 32"), std::string::npos);
  EXPECT_NE(error_of("layer,forward_s\na,1\n").find("csv:batch=N"), std::string::npos);
  EXPECT_NE(error_of("# batch = 4\nlayer,forward_s\na,1\n", "csv:batch=8", ErrorKind::usage).find("batch 4"),
            std::string::npos);
}

TEST(Csv, SpreadsheetsAreRead) {
  const std::string text =
      "\xEF\xBB\xBF# model = toy,,,\r\n# batch = 3,,,\r\n\"layer\",\"kind\",\"forward_ms\",\r\n\"a\",\"\",\"1\",\r\n"
      ",,,\r\n\"\",\"\",\"\",\r\n\"b\",\"relu\",\"2\",\r\n[iterations],,,\r\nbatch,forward_ms,,\r\n3,4.5,,\r\n6,9,,"
      "\r\n";
  const auto trace = import_text(text, "").trace;
  EXPECT_EQ(trace.model, "toy");
  EXPECT_EQ(trace.layers.size(), 2U);
  EXPECT_EQ(trace.iteration_forward.seconds, (std::vector<double>{4.5e-3}));
  ASSERT_EQ(trace.other_batches.size(), 1U);
  EXPECT_EQ(trace.other_batches[0].batch, 6);
}

// Strides and pads from the shapes: AlexNet's and ResNet's first convolutions, a strided 1x1, and a rounded-up pool.
TEST(Csv, WindowsFollowFromShapes) {
  const auto trace = import_text(
                         "layer,kind,inputs,input_shapes,output_shape,kernel,forward_s\n"
                         "a,conv,-,2x3x224x224,2x64x55x55,11x11,1\n"
                         "b,conv,-,2x3x224x224,2x64x112x112,7,1\n"
                         "c,conv,b,,2x8x56x56,1,1\n"
                         "d,conv,c,,2x8x56x56,3,1\n"
                         "e,max-pool,b,,2x64x56x56,3,1\n")
                         .trace;
  const auto window = [&](std::size_t id) {
    const auto& l = trace.layers[id];
    return std::vector<int>{l.kernel[1], l.stride[1], l.pad_begin[1], l.pad_end[1]};
  };
  EXPECT_EQ(window(0), (std::vector<int>{11, 4, 2, 2}));
  EXPECT_EQ(window(1), (std::vector<int>{7, 2, 3, 3}));
  EXPECT_EQ(window(2), (std::vector<int>{1, 2, 0, 0}));
  EXPECT_EQ(window(3), (std::vector<int>{3, 1, 1, 1}));
  EXPECT_EQ(window(4), (std::vector<int>{3, 2, 0, 1}));
}

// ---- mistakes ----

TEST(Csv, MistakesAreOneLineThatHelps) {
  const std::string head = "# batch = 2\nlayer,kind,inputs,output_shape,kernel,parameters,forward_ms,backward_ms\n";
  const std::pair<std::string, const char*> cases[] = {
      {"", "empty"},
      {"# batch = 2\n", "there are no layers"},
      {head, "there are no layers"},
      {"# batch = 2\nlayer,foward_ms\na,1\n",
       "line 2: the layers have no column 'foward_ms'; did you mean 'forward_ms'?"},
      {"# batch = 2\nlayer,forward\na,1\n", "line 2: column 'forward' has no unit; name it forward_s, forward_ms"},
      {"# batch = 2\nlayer,kind\na,conv\n", "no column of times"},
      {"# batch = 2\nkind,forward_s\nconv,1\n", "no column 'layer'"},
      {"# batch = 2\nlayer,name,forward_s\na,a,1\n", "column 'layer' is there twice"},
      {"# batch = 2\nlayer,forward_s,forward_ms\na,1,1\n", "columns 'forward_s' and 'forward_ms' say the same"},
      {"# bacth = 2\nlayer,forward_s\na,1\n", "line 1 has 'bacth', which is no key of a trace; did you mean 'batch'?"},
      {"# batch = 2\n# batch = 3\nlayer,forward_s\na,1\n", "line 2 gives 'batch' again"},
      {"# batch = two\nlayer,forward_s\na,1\n", "line 1 has batch = 'two'"},
      {"# batch = -2\nlayer,forward_s\na,1\n", "line 1 has batch = '-2'"},
      {"# tandem_trace = 2\nlayer,forward_s\na,1\n", "line 1 has tandem_trace = '2'; 1 is expected"},
      {"layer;forward_s\na;1\n", "cells are separated with commas"},
      {head + "a,conv,,2x1,,,1\n", "line 3 has 7 cells where the header has 8"},
      {head + "a,conv,,2x1,,,1,2,3\n", "line 3 has '3' in cell 9, where the header has no column"},
      {head + ",conv,,2x1,,,1,2\n", "line 3: layer is missing"},
      {head + "a,convolution,,2x1,,,1,2\n", "line 3: kind is 'convolution'; known kinds are conv fc"},
      {head + "a,conv,,2y1,,,1,2\n", "line 3: output_shape is '2y1'; extents of 1 or more"},
      {head + "a,conv,,2x0,,,1,2\n", "line 3: output_shape is '2x0'"},
      {head + "a,conv,,2x-1,,,1,2\n", "line 3: output_shape is '2x-1'"},
      {head + "a,conv,,2x99999999999999999999,,,1,2\n", "line 3: output_shape is"},
      {head + "a,conv,,2x1,3x,,1,2\n", "line 3: kernel is '3x'"},
      {head + "a,conv,,2x1,,weight,1,2\n", "line 3: parameters is 'weight'"},
      {head + "a,conv,,2x1,,weight:0,1,2\n", "line 3: parameters is 'weight:0'"},
      {head + "a,conv,,2x1,,-5,1,2\n", "line 3: parameters is '-5'"},
      {head + "a,conv,,2x1,,,-1,2\n", "line 3: forward_ms is '-1'; numbers, 0 or more"},
      {head + "a,conv,,2x1,,,nan,2\n", "line 3: forward_ms is 'nan'"},
      {head + "a,conv,,2x1,,,1e999,2\n", "line 3: forward_ms is '1e999'"},
      {head + "a,conv,,2x1,,,\"1,5\",2\n", "line 3: forward_ms is '1,5'"},
      {head + "a,conv,,2x1,,,1;,2\n", "line 3: forward_ms is '1;'"},
      {head + "a,conv,,2x1,,,1e300,2\n", "forward has a sample of"},
      {head + "a,conv,b,2x1,,,1,2\nb,conv,a,2x1,,,1,2\n", "line 3: inputs has 'b', which is no layer above this row"},
      {head + "conv1,conv,-,2x1,,,1,2\nb,conv,cnv1,2x1,,,1,2\n", "did you mean 'conv1'?"},
      {head + "a,conv,a,2x1,,,1,2\n", "line 3: inputs has 'a', which is no layer above"},
      {head + "a,conv,-,2x1,,,1,2\nb,conv,-;a,2x1,,,1,2\n", "either the model's input (-) or other layers"},
      {head + "a,conv,,2x1,,,1,2\na,conv,,2x1,,,1,2\n", "line 4 gives the layer 'a' again (first on line 3)"},
      {head + "a,conv,,2x1,,,1,2\n[split]\n", "line 4 starts an unknown section 'split'; did you mean 'splits'?"},
      {head + "a,conv,,2x1,,,1,2\n[layers]\n", "line 4 starts the layers again"},
      {head + "a,conv,,2x1,,,1,2\n[notes]\n[notes]\n", "line 5 starts the notes again"},
      {head + "a,conv,,2x1,,,1,2\n[splits]\nlayer,axis,fraction,forward_s\n",
       "line 5: the splits have no column 'input_shape'"},
      {head + "a,conv,,2x1,,,1,2\n[splits]\nlayer,axis,fraction,input_shape,output_shape\nb,batch,0.5,1x1,1x1\n",
       "line 6: layer is 'b'; no layer above has this name"},
      {head + "a,conv,,2x1,,,1,2\n[splits]\nlayer,axis,fraction,input_shape,output_shape\na,depth,0.5,1x1,1x1\n",
       "line 6: axis is 'depth'"},
      {head + "a,conv,,2x1,,,1,2\n[splits]\nlayer,axis,fraction,input_shape,output_shape\na,batch,1.5,1x1,1x1\n",
       "line 6: fraction is '1.5'"},
      {head + "a,conv,,2x1,,,1,2\n[outside]\nkind,time_s\nlunch,1\n", "line 6: kind is 'lunch'"},
      {head + "a,conv,,2x1,,,1,2\n[outside]\nkind,time_s\ncopy,1\ncopy,1\n", "given twice"},
      {head + "a,conv,,2x1,,,1,2\n[collectives]\noperation,bytes\nall-reduce,12kB\n", "line 6: bytes is '12kB'"},
      {head + "a,conv,,2x1,,,1,2\n[iterations]\nbatch,forward\n4,1\n", "line 5: column 'forward' has no unit"},
      {head + "a,conv,,2x1,,,1,2\n[iterations]\nbatch,forward_s\n4,1\n3,1\n", "batches rise"},
      {head + "a,conv,,2x1,,\"w:1x2\n", "line 3 opens a quote"},
      {"# tandem_trace = 1\n# batch = 2\nlayer,inputs,parameters,forward_s\na,,,1\n", "line 4: inputs is not complete"},
      {"# tandem_trace = 1\n# batch = 2\nlayer,inputs,parameters,forward_s\na,-,12,1\n",
       "line 4: parameters is not complete"},
      {"layer,forward_s\na,1\n# tandem_trace = 1\n", "it stands above the layers"},
      {std::string("# batch = 2\nlayer,forward_s\na\0b,1\n", 33), "not UTF-8"},
      {"# batch = 2\nlayer,forward_s\na\xff,1\n", "not UTF-8"},
      {"# batch = 2\nlayer,backward_s,backward_data_s,forward_s\na,1,1,1\n",
       "line 3 has a joint backward time and separate ones"},
  };
  for (const auto& [text, expected] : cases) {
    const auto message = error_of(text);
    EXPECT_NE(message.find(expected), std::string::npos) << message << " / " << expected;
    EXPECT_NE(message.find("toy.csv: "), std::string::npos) << message;
  }
}

TEST(Csv, OtherTablesAreNotTaken) {
  const auto importer = Registry<Importer>::instance().make("csv");
  for (const char* text : {"", "<html>", "{\"layer\": 1, \"name\": 2}", "a,b\n1,2\n", "\"layer", "layer\n",
                           "layer,output_shape_NCHW,fwd_ms,bwd_ms\nconv1,2x3,1,1\n", "node1 -- Conv2d(3, 64)"}) {
    EXPECT_FALSE(importer->recognizes(text)) << text;
  }
  for (const char* text :
       {"layer,forward_ms\n", "# batch = 2\n\n[layers]\nname,kind\n", "# tandem_trace = 1\n", "layer;forward_ms\n"}) {
    EXPECT_TRUE(importer->recognizes(text)) << text;
  }
}

TEST(Csv, DeepBenchsConvolutionsAreRefusedWithTheReason) {
  const std::string path = TANDEM_SOURCE_DIR "/../shared/reference/layer_profiles/deepbench_conv_v100_fp32.csv";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no reference data at " << path;
  try {
    (void)import_trace({path});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    EXPECT_NE(std::string(error.what()).find("single convolutions"), std::string::npos) << error.what();
  }
}

// A valid trace or one clear line, wherever the file is cut and whatever is changed in it.
TEST(Csv, CutAndGarbledFilesNeverCrash) {
  const std::string complete = to_csv_text(full_trace());
  const std::string by_hand =
      "# batch = 2\nlayer,kind,inputs,input_shapes,output_shape,kernel,stride,pad,groups,parameters,parameter_bytes,"
      "activation_bytes,forward_ms,backward_us\nconv1,conv,-,2x3x9x9,2x4x9x9,3,1,1x1,1,weight:4x3x3x3;bias:4,,,1,2\n"
      "pool,,,,,3x3,2,,,,,,1;2,\nfc,fc,,,2x10,,,,,650,,80,3,4\nx,,conv1;fc,,,,,,,,400,1000,5,6\n";
  Random random(11);
  for (const auto& whole : {complete, by_hand}) {
    const auto survive = [](const std::string& text) {
      try {
        (void)import_text(text);
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::input);
      }
    };
    EXPECT_NO_THROW((void)import_text(whole));
    for (std::size_t length = 1; length < whole.size(); length += 3) survive(whole.substr(0, length));
    // Cut inside the last number: an export is refused; a table by hand may end like that, and says so.
    const auto cut = whole.substr(0, whole.size() - 1);
    if (whole == complete) {
      EXPECT_NE(error_of(cut).find("the file was cut short"), std::string::npos);
    } else {
      const auto notes = import_text(cut).trace.notes;
      EXPECT_NE(std::find(notes.begin(), notes.end(), kUnfinishedLine), notes.end());
    }
    for (int i = 0; i < 1000; ++i) {
      std::string text = whole;
      for (int k = 0; k < 4; ++k) {
        text[random.below(static_cast<std::uint32_t>(text.size()))] = "0123456789-x,;:=\"\\ \n#[]e."[random.below(25)];
      }
      survive(text);
    }
  }
}

// Claims of any size cost no more than their text.
TEST(Csv, HugeClaimsAreRefusedOrHarmless) {
  std::string many = "# batch = 2\nlayer,inputs,forward_s\n";
  for (int i = 0; i < 20'000; ++i) many += "l" + std::to_string(i) + ",,1\n";
  EXPECT_EQ(import_text(many).trace.layers.size(), 20'000U);
  std::string wide = "# batch = 2\nlayer,output_shape,forward_s\na,2";
  for (int i = 0; i < 100'000; ++i) wide += "x1";
  EXPECT_NE(error_of(wide + ",1\n").find("output_shape is '2x1x1"), std::string::npos);
  const std::string most = "72057594037927936";  // 2^56
  EXPECT_NE(error_of("# batch = 2\nlayer,kind,input_shapes,output_shape,kernel,forward_s\na,conv," + most + "x" + most +
                     ",2x" + most + "," + "2147483647,1\n")
                .find("64 bits"),
            std::string::npos);
  (void)error_of("# batch = 2\nlayer,kind,input_shapes,kernel,stride,parameters,forward_s\na,conv,1x1x" + most +
                 ",2147483647,2147483647,9999,1\n");
  EXPECT_NE(error_of("# batch = 2\nlayer,forward_s\na,1" + std::string(1 << 20, '"') + "\n").size(), 0U);
  EXPECT_NE(error_of(std::string(1 << 20, ',')).find("line 1 has more than 10000 cells"), std::string::npos);
}

}  // namespace
}  // namespace tandem
