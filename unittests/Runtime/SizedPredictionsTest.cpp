// SPDX-License-Identifier: Apache-2.0
#include "Spyre/Runtime/Launch/SizedPredictions.h"

#include "gtest/gtest.h"

#include <thread>

using namespace spyre::runtime;

/// Seconds at these sizes, or -1 if the timing engine has to be asked.
static double secondsAt(const SizedPredictions &predictions,
                        const std::vector<int64_t> &sizes) {
  std::optional<Prediction> found = predictions.find(sizes);
  return found ? found->seconds : -1;
}

TEST(SizedPredictionsTest, aLineThroughTwoSizes) {
  SizedPredictions predictions;
  predictions.add({64}, {64, 640});
  EXPECT_EQ(secondsAt(predictions, {64}), 64);
  EXPECT_EQ(secondsAt(predictions, {65}), -1);
  predictions.add({96}, {128, 1280});
  EXPECT_EQ(secondsAt(predictions, {80}), 96);
  EXPECT_EQ(predictions.find({80})->bytes, 960);
  // Beyond both, as far as twice the least.
  EXPECT_EQ(secondsAt(predictions, {128}), 192);
  EXPECT_EQ(secondsAt(predictions, {129}), -1);
  // Not below both.
  EXPECT_EQ(secondsAt(predictions, {63}), -1);
}

TEST(SizedPredictionsTest, sizesThatGrowTogether) {
  // A decode step has a size for each layer's cache.
  SizedPredictions predictions;
  predictions.add({64, 64, 65}, {1, 0});
  predictions.add({66, 66, 67}, {2, 0});
  EXPECT_EQ(secondsAt(predictions, {65, 65, 66}), 1.5);
  EXPECT_EQ(secondsAt(predictions, {68, 68, 69}), 3);
  EXPECT_EQ(secondsAt(predictions, {65, 65, 65}), -1);
  EXPECT_EQ(secondsAt(predictions, {68, 66, 67}), -1);
}

TEST(SizedPredictionsTest, oneOfSeveralSizes) {
  SizedPredictions predictions;
  predictions.add({8, 100}, {10, 0});
  predictions.add({8, 120}, {14, 0});
  predictions.add({4, 110}, {7, 0});
  EXPECT_EQ(secondsAt(predictions, {8, 110}), 12);
  // The line from {4, 110} through {8, 110} has but one known size.
  EXPECT_EQ(secondsAt(predictions, {6, 110}), -1);
}

TEST(SizedPredictionsTest, sizesFarApart) {
  SizedPredictions predictions;
  predictions.add({2, 64}, {1, 0});
  predictions.add({5, 66}, {2, 0});
  predictions.add({10, 64}, {3, 0});
  predictions.add({20, 64}, {4, 0});
  // Between 2 and 10 of a size is too far, whatever the others.
  EXPECT_EQ(secondsAt(predictions, {8, 64}), -1);
  EXPECT_EQ(secondsAt(predictions, {15, 64}), 3.5);
}

TEST(SizedPredictionsTest, cardsPredictAtOnce) {
  SizedPredictions predictions;
  auto predict = [&](int64_t first) {
    for (int64_t size = first; size < 200; size += 2) {
      predictions.find({size, 1});
      predictions.add({size, 1}, {static_cast<double>(size), 0});
    }
  };
  std::thread other(predict, 100);
  predict(101);
  other.join();
  for (int64_t size = 100; size < 200; ++size)
    EXPECT_EQ(secondsAt(predictions, {size, 1}), size);
}
