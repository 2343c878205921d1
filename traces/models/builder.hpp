// Adds layers one after the other; shapes, parameters, bytes and FLOPs follow from those of the inputs.
#pragma once

#include <string>
#include <vector>

#include "traces/trace.hpp"

namespace tandem {

class ModelBuilder {
 public:
  // `input` is the shape of the model's input, batch first.
  ModelBuilder(std::string model, Shape input);

  // Square windows in two dimensions, equal pads on all sides. With `ceil_mode` the output extent is rounded up; the
  // layer's end pad then says how far the last window really reaches over the edge.
  struct Window {
    int kernel = 1;
    int stride = 1;
    int pad = 0;
    bool ceil_mode = false;
  };
  // `from` is the layer read; kInput is the model's input.
  static constexpr LayerId kInput{};
  LayerId conv(const std::string& name, LayerId from, std::int64_t channels, Window window, bool bias);
  LayerId bn(const std::string& name, LayerId from);
  LayerId relu(const std::string& name, LayerId from);  // in place
  LayerId max_pool(const std::string& name, LayerId from, Window window);
  LayerId global_avg_pool(const std::string& name, LayerId from);
  LayerId add(const std::string& name, LayerId left, LayerId right);
  LayerId concat(const std::string& name, const std::vector<LayerId>& from);  // along the channels
  LayerId lrn(const std::string& name, LayerId from);  // local response normalization across channels
  LayerId flatten(const std::string& name, LayerId from);
  LayerId dropout(const std::string& name, LayerId from);
  LayerId fc(const std::string& name, LayerId from, std::int64_t features);
  LayerId softmax_loss(const std::string& name, LayerId from);  // its output are the probabilities

  [[nodiscard]] Trace finish();

 private:
  [[nodiscard]] const Shape& shape_of(LayerId id) const;
  [[nodiscard]] Layer start(const std::string& name, OpKind kind, std::vector<LayerId> inputs) const;
  // Sets the window and the spatial extents of the output.
  static void set_window(Layer& layer, Window window);
  LayerId push(Layer layer);

  Trace trace_;
  Shape input_;
};

}  // namespace tandem
